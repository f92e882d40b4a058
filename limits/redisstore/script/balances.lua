-- What take.lua and refund.lua share: balances of every kind, as they are kept.
--
-- A value is a tag, last and owed, 7 bytes each, most significant first, and x in 0, 5 or 7 bytes: last - since of debts and
-- windows, since of the others. Rules that remember single charges have x in 7 bytes, and then 7 bytes for the sum of all
-- charges before the oldest, and 14 for each entry: its time, and the sum of all charges up to and including it.
--
-- A tag has what is needed to read a balance whose rule has changed: the letter of the arithmetic; 8 times the length of a
-- first number plus the length of a second one; these numbers; of a total its run in 7 bytes; and 2 bytes that mark the rule.
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local now, live = tonumber(ARGV[1]), false
if not now then
  local t = redis.call('TIME')
  now, live = tonumber(t[1]) * 1000000 + tonumber(t[2]), true
end

local function start(at, per) return at - at % per end

-- number reads 7 bytes at a position.
local function number(s, p)
  local a, b, c, d, e, f, g = string.byte(s, p, p + 6)
  return (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
end

local function bytes(x)
  local g = x % 256; x = floor(x / 256)
  local f = x % 256; x = floor(x / 256)
  local e = x % 256; x = floor(x / 256)
  local d = x % 256; x = floor(x / 256)
  local c = x % 256; x = floor(x / 256)
  return string.char(floor(x / 256), x % 256, c, d, e, f, g)
end

-- A past is {s = entries, n = how many, before = sum}; entries count from 1.
local function time(p, i) return number(p.s, 14 * i - 13) end

local function upto(p, i)
  if i == 0 then return p.before end
  return number(p.s, 14 * i - 6)
end

-- from returns the first entry that is not before at, or n + 1.
local function from(p, at)
  local low, high = 1, p.n + 1
  while low < high do
    local mid = floor((low + high) / 2)
    if time(p, mid) < at then low = mid + 1 else high = mid end
  end
  return low
end

-- sum returns what was charged in the i-th entry and all after it.
local function sum(p, i)
  if i > p.n then return 0 end
  return upto(p, p.n) - upto(p, i - 1)
end

local function only(at, amount)
  if amount == 0 then return {s = '', n = 0, before = 0} end
  return {s = bytes(at) .. bytes(amount), n = 1, before = 0}
end

-- forget drops all before the i-th entry.
local function forget(p, i)
  if i == 1 then return p end
  return {s = string.sub(p.s, 14 * i - 13), n = p.n - i + 1, before = upto(p, i - 1)}
end

-- push adds a charge that is not before any other. Sums begin anew long before they pass 53 bits.
local function push(p, at, amount)
  local total = upto(p, p.n)
  if total > 2 ^ 52 then
    local parts = {}
    for i = 1, p.n do parts[i] = bytes(time(p, i)) .. bytes(upto(p, i) - p.before) end
    p = {s = table.concat(parts), n = p.n, before = 0}
    total = upto(p, p.n)
  end
  if p.n > 0 and time(p, p.n) == at then
    return {s = string.sub(p.s, 1, -8) .. bytes(total + amount), n = p.n, before = p.before}
  end
  return {s = p.s .. bytes(at) .. bytes(total + amount), n = p.n + 1, before = p.before}
end

-- short reads the bytes from one position to another.
local function short(s, first, last)
  local x = 0
  for p = first, last do x = x * 256 + string.byte(s, p) end
  return x
end

-- reading returns, of a tag or what begins with one, what is needed to read balances that bear it, and how long it is.
local function reading(v)
  local kind, lengths = string.sub(v, 1, 1), string.byte(v, 2)
  local first = floor(lengths / 8)
  local a, b, n = short(v, 3, 2 + first), short(v, 3 + first, 2 + first + lengths % 8), 4 + first + lengths % 8
  local tick = (kind == 'M' or kind == 'V') and 1000 or 1
  if kind == 'm' or kind == 'M' then return {kind = 'm', drain = a, unit = b, tick = tick}, n end
  if kind == 'v' or kind == 'V' then return {kind = 'v', per = b, tick = tick, weight = b / tick}, n end
  if kind == 'b' then return {kind = kind, soft = a, per = b, tick = 1}, n end
  if kind == 't' then return {kind = kind, soft = a, per = b, run = number(v, n - 1), tick = 1}, n + 7 end
  return {kind = kind, per = b, tick = 1}, n
end

-- exact reports whether numbers are what a balance may have; 7 bytes can hold others.
local function exact(...)
  for i = 1, select('#', ...) do
    local x = select(i, ...)
    if x < 0 or x > 9007199254740992 then return false end
  end
  return true
end

-- parse returns the balance in a value, and the rule it was counted by; nil if it is none.
local function parse(v)
  if #v < 18 or not string.find(v, '^[mMwvVlbt]') or string.byte(v, 2) > 63 then return nil end
  local lengths = string.byte(v, 2)
  if #v < 32 + floor(lengths / 8) + lengths % 8 and string.sub(v, 1, 1) == 't' then return nil end
  local r, n = reading(v)
  if #v < n + 14 then return nil end
  if r.kind == 'm' and (r.drain == 0 or r.unit == 0) or r.kind ~= 'm' and r.per == 0 then return nil end
  local b = {last = number(v, n + 1), owed = number(v, n + 8), tag = string.sub(v, 1, n)}
  if r.kind ~= 'l' and r.kind ~= 't' then
    if #v > n + 21 then return nil end
    b.since = short(v, n + 15, #v)
    if r.kind == 'm' or r.kind == 'w' then b.since = b.last - b.since end
  else
    if #v < n + 28 or (#v - n) % 14 > 0 then return nil end
    b.since = number(v, n + 15)
    b.past = {s = string.sub(v, n + 29), n = (#v - n - 28) / 14, before = number(v, n + 22)}
    if not exact(b.past.before, upto(b.past, b.past.n) - b.past.before) then return nil end
  end
  if not exact(b.last, b.owed, b.since) then return nil end
  return b, r
end

-- save writes a balance that is full again at over, in microseconds: the key goes in the millisecond after.
local function save(key, tag, r, b, over)
  local x = b.since
  if r.kind == 'm' or r.kind == 'w' then x = b.last - b.since end
  local v = tag .. bytes(b.last) .. bytes(b.owed)
  if b.past then
    v = v .. bytes(x) .. bytes(b.past.before) .. b.past.s
  elseif x > 1099511627775 then
    v = v .. bytes(x)
  elseif x > 0 then
    v = v .. string.sub(bytes(x), 3)
  end
  if live then
    redis.call('SET', key, v, 'PXAT', string.format('%.0f', ceil(over / 1000)))
  else
    redis.call('SET', key, v)
  end
end

-- clock is a balance's own time at t.
local function clock(r, b, t)
  t = max(t, b.last)
  return t - t % r.tick
end

local function drained(r, b, at)
  if at <= b.last then return b.owed end
  return max(0, b.owed - floor((at - b.last) / r.tick) * r.drain)
end

-- counters returns what was charged in the window of at and in the one before.
local function counters(r, b, at)
  local ago = start(at, r.per) - start(b.last, r.per)
  if ago == 0 then return b.owed, b.since end
  if ago == r.per then return 0, b.owed end
  return 0, 0
end

-- A spell is a burst's balance at one period, see limits.Burst.
local function spell(r, b, t)
  local at = max(t, b.last)
  local s = {now = at, begin = start(at, r.per), first = b.owed, ago = 0, here = 0}
  if b.owed == 0 then return s end
  s.ago, s.here = floor(b.since / r.soft), b.since % r.soft
  local passed = (s.begin - start(b.last, r.per)) / r.per
  if passed == 0 then return s end
  s.ago = s.ago + passed
  if s.first - s.ago * r.soft <= 0 then s.first, s.ago, s.here = 0, 0, 0 end
  return s
end

local function debt(r, s)
  if s.ago == 0 then return 0 end
  return s.first - s.ago * r.soft
end

local function together(r, s, past)
  return {owed = s.first, last = s.now, since = s.ago * r.soft + s.here, past = past}
end

-- paid returns when a spell is over.
local function paid(r, s)
  if s.first == 0 then return s.begin end
  if s.ago > 0 and s.here > 0 then return s.begin + r.per end
  return s.begin + (floor((s.first - 1) / r.soft) + 1 - s.ago) * r.per
end

-- oldest returns the first entry that still counts at a time: of a total, the time at which a period begins.
local function oldest(r, p, at)
  if r.kind == 'l' then return from(p, at - r.per + 1) end
  return from(p, at - (r.run - 1) * r.per)
end

-- full returns when a balance is full again.
local function full(r, b)
  if r.kind == 'm' then return b.last + ceil(b.owed / r.drain) * r.tick end
  if r.kind == 'w' then
    if b.owed == 0 then return b.last end
    return start(b.last, r.per) + r.per
  end
  if r.kind == 'v' then
    if b.owed > 0 then return start(b.last, r.per) + 2 * r.per end
    if b.since > 0 then return start(b.last, r.per) + r.per end
    return b.last
  end
  local over = b.last
  if r.kind ~= 'l' then over = paid(r, spell(r, b, b.last)) end
  if b.past and b.past.n > 0 then over = max(over, time(b.past, b.past.n) + (r.run or 1) * r.per) end
  return over
end
