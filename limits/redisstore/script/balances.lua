-- What take.lua and refund.lua share: balances of every kind, as they are kept.
--
-- A value is 'TAG owed last x', for rules that remember single charges followed by ' before\n' and 14 bytes for each entry:
-- its time and the sum of all charges up to and including it, 7 bytes each, most significant first; before is the sum of
-- all that came before the oldest. x is last - since of debts and windows, and since of the others. A tag is the letter of
-- the arithmetic, the numbers that are needed to read a balance whose rule has changed, in base 36, and a mark of the rule.
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local now, live = tonumber(ARGV[1]), false
if not now then
  local t = redis.call('TIME')
  now, live = tonumber(t[1]) * 1000000 + tonumber(t[2]), true
end

local function start(at, per) return at - at % per end

-- number reads 7 bytes at position p.
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

-- reading returns, of a tag, what is needed to read balances that bear it.
local function reading(tag)
  local kind = string.sub(tag, 1, 1)
  local a, b, c = string.match(string.sub(tag, 2), '^(%w+)%.?(%w*)%.?(%w*)')
  local tick = (kind == 'M' or kind == 'V') and 1000 or 1
  a, b, c = tonumber(a, 36), tonumber(b, 36), tonumber(c, 36)
  if kind == 'm' or kind == 'M' then return {kind = 'm', drain = a, unit = b, tick = tick} end
  if kind == 'v' or kind == 'V' then return {kind = 'v', per = a, tick = tick, weight = a / tick} end
  if kind == 'b' then return {kind = kind, soft = a, per = b, tick = 1} end
  if kind == 't' then return {kind = kind, soft = a, per = b, run = c, tick = 1} end
  return {kind = kind, per = a, tick = 1}
end

-- parse returns the balance in a value, and its tag; nil if it is none.
local function parse(v)
  local tag, owed, last, x, at = string.match(v, '^([mMwvVlbt][%w%.]+) (%d+) (%d+) (%d+)()')
  if not tag then return nil end
  local kind = string.sub(tag, 1, 1)
  local b = {owed = tonumber(owed), last = tonumber(last), since = tonumber(x)}
  if kind == 'm' or kind == 'M' or kind == 'w' then b.since = b.last - b.since end
  if kind ~= 'l' and kind ~= 't' then
    if at ~= #v + 1 then return nil end
    return b, tag
  end
  local before, entries = string.match(v, '^ (%d+)\n()', at)
  if not before or (#v + 1 - entries) % 14 > 0 then return nil end
  b.past = {s = string.sub(v, entries), n = (#v + 1 - entries) / 14, before = tonumber(before)}
  return b, tag
end

-- save writes a balance that is full again at over, in microseconds: the key goes in the millisecond after.
local function save(key, tag, r, b, over)
  local x = b.since
  if r.kind == 'm' or r.kind == 'w' then x = b.last - b.since end
  local v = string.format('%s %.0f %.0f %.0f', tag, b.owed, b.last, x)
  if b.past then v = v .. string.format(' %.0f\n', b.past.before) .. b.past.s end
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
