-- Decides about balances of every kind. See script.go for the arguments and the answer.

-- isFull reports whether nothing is used of a balance at now.
local function isFull(r, b)
  local at = clock(r, b, now)
  if r.kind == 'm' then return drained(r, b, at) == 0 end
  if r.kind == 'w' then return b.owed == 0 or start(b.last, r.per) ~= start(at, r.per) end
  if r.kind == 'v' then
    local current, previous = counters(r, b, at)
    return current == 0 and previous == 0
  end
  if r.kind ~= 'l' then
    local s = spell(r, b, now)
    if s.first > 0 then return false end
    at = s.begin
  end
  return not b.past or oldest(r, b.past, at) > b.past.n
end

-- burstUsed is used for bursts, their totals not counted.
local function burstUsed(r, b)
  local s = spell(r, b, b.last)
  local since = s.begin - s.ago * r.per
  if s.ago == 0 then return s.first, since end
  return debt(r, s) + s.here, since
end

-- totalUsed returns the first entry of a past that counts at the balance's own time, and the sum of all that do.
local function totalUsed(r, b)
  local at = b.last
  if r.kind == 't' then at = start(at, r.per) end
  local i = oldest(r, b.past, at)
  return i, sum(b.past, i)
end

-- used returns what is used of a balance at its own time, in whole units, and the earliest time that may be part of that.
local function used(r, b)
  if r.kind == 'm' then return ceil(b.owed / r.unit), b.since end
  if r.kind == 'w' then return b.owed, b.since end
  if r.kind == 'v' then
    local at = clock(r, b, b.last)
    local current, previous = counters(r, b, at)
    local estimate = previous * (r.weight - floor(at % r.per / r.tick)) + current * r.weight
    return ceil(estimate / r.weight), start(at, r.per) - (previous > 0 and r.per or 0)
  end
  if r.kind == 'l' then
    local i, all = totalUsed(r, b)
    return all, all > 0 and time(b.past, i) or 0
  end
  local some, since = burstUsed(r, b)
  if r.kind == 't' then
    local i, all = totalUsed(r, b)
    if i <= b.past.n then since = min(since, time(b.past, i)) end
    some = max(some, all)
  end
  return some, since
end

-- owing returns a balance of which so much is used at last.
local function owing(r, use, last, since)
  if r.kind == 'm' then
    return {owed = min(use * r.unit, r.most), last = ceil(last / r.tick) * r.tick, since = since - since % r.tick}
  end
  if r.kind == 'w' then return {owed = min(use, r.most), last = last, since = since} end
  if r.kind == 'v' then return {owed = min(use, r.most), last = ceil(last / r.tick) * r.tick, since = 0} end
  if r.kind == 'l' then return {owed = 0, last = last, since = 0, past = only(last, min(use, r.most))} end
  local b = {owed = min(use, r.hard), last = last, since = 0}
  if r.kind == 't' then b.past = only(start(last, r.per), min(use, r.total)) end
  return b
end

-- inherit returns a burst's balance that another burst with the same period has counted: debt stays debt.
local function inherit(r, b, old)
  local s = spell(old, b, b.last)
  if s.ago == 0 then
    s.first = min(s.first, r.hard)
  else
    local left, here = debt(old, s), s.here
    if left + here > r.soft then left, here = left + here, 0 end
    left = min(left, r.hard - r.soft)
    if left == 0 then
      s.first, s.ago, s.here = min(here, r.hard), 0, 0
    else
      s.first, s.ago, s.here = left + r.soft, 1, here
    end
  end
  local own = together(r, s)
  if r.kind == 't' then
    local use = burstUsed(old, b)
    if old.kind == 't' then
      local _, all = totalUsed(old, b)
      use = all
    end
    own.past = only(start(b.last, r.per), min(use, r.total))
  end
  return own
end

-- convert returns a balance of another rule as one of this. What was used stays used.
local function convert(r, b, old)
  if isFull(old, b) then return owing(r, 0, b.last, 0) end
  local bursts = (r.kind == 'b' or r.kind == 't') and (old.kind == 'b' or old.kind == 't')
  if bursts and r.per == old.per and r.soft > 0 then return inherit(r, b, old) end
  local use, since = used(old, b)
  return owing(r, use, b.last, since)
end

-- rule returns the rule whose arguments begin at a. Quota is the highest cost.
local function rule(a)
  local r = reading(ARGV[a])
  local x, y = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  if r.kind == 'm' then
    r.drain, r.unit, r.bound, r.tick = x, y, tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
    r.queue = ARGV[a + 5] ~= ''
    r.most, r.quota = tonumber(ARGV[a + 5]) or r.bound, tonumber(ARGV[a + 6])
  elseif r.kind == 'b' or r.kind == 't' then
    r.hard, r.soft, r.per, r.quota = x, y, tonumber(ARGV[a + 3]), x
    if r.kind == 't' then
      r.total, r.run = tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
      r.quota = min(r.hard, r.total)
    end
  else
    r.most, r.quota, r.per = x, x, y
  end
  return r
end

-- measure moves a balance on to now, and notes how much more fits, and of a rule that remembers how much is left of it and the
-- first entry that counts.
local function measure(r, b)
  local at = clock(r, b, now)
  if r.kind == 'm' then
    b.owed, b.at = drained(r, b, at), at
    if b.owed == 0 then b.since = at end
    b.room = floor((r.bound - b.owed) / r.unit)
  elseif r.kind == 'w' then
    if start(b.last, r.per) ~= start(at, r.per) then b.owed = 0 end
    if b.owed == 0 then b.since = at end
    b.at, b.room = at, r.most - b.owed
  elseif r.kind == 'v' then
    b.owed, b.since = counters(r, b, at)
    b.at = at
    local estimate = b.since * (r.weight - floor(at % r.per / r.tick)) + b.owed * r.weight
    b.room = floor((r.most * r.weight - estimate) / r.weight)
  elseif r.kind == 'l' then
    b.at, b.first = at, oldest(r, b.past, at)
    b.room = r.most - sum(b.past, b.first)
    b.left = b.room
  else
    local s = spell(r, b, now)
    b.spell, b.at = s, s.now
    if s.ago == 0 then b.room = r.hard - s.first else b.room = max(r.soft - debt(r, s), 0) - s.here end
    if r.kind == 't' then
      b.first = oldest(r, b.past, s.begin)
      b.left = r.total - sum(b.past, b.first)
      b.room = min(b.room, b.left)
    end
  end
end

-- take adds what was granted.
local function take(r, b, amount)
  if r.kind == 'm' then
    b.owed = b.owed + amount * r.unit
  elseif r.kind == 'w' or r.kind == 'v' then
    b.owed = b.owed + amount
  elseif r.kind == 'l' then
    b.past = push(forget(b.past, b.first), b.at, amount)
  else
    local s = b.spell
    if s.ago == 0 then s.first = s.first + amount else s.here = s.here + amount end
    b.owed, b.since = s.first, s.ago * r.soft + s.here
    if r.kind == 't' then b.past = push(forget(b.past, b.first), s.begin, amount) end
  end
  b.last = b.at
end

-- covering returns the first entry from the i-th on with which the sum of both and all between reaches amount.
local function covering(p, i, amount)
  local base, low, high = upto(p, i - 1), i, p.n
  while low < high do
    local mid = floor((low + high) / 2)
    if upto(p, mid) - base < amount then low = mid + 1 else high = mid end
  end
  return low
end

-- tell appends what counts of a past to the answer: all of it would be long, so what lies between the entries that anybody
-- asks about, which are marked, is told as one. A sum up to a marked entry is what it was.
local function tell(answer, b, marked)
  local list, i = {}, b.first
  if i <= b.past.n then
    marked[i], marked[b.past.n] = true, true
  end
  for m in pairs(marked) do list[#list + 1] = m end
  table.sort(list)
  answer[#answer + 1] = #list
  local told = upto(b.past, i - 1)
  for _, m in ipairs(list) do
    answer[#answer + 1] = time(b.past, m)
    answer[#answer + 1] = upto(b.past, m) - told
    told = upto(b.past, m)
  end
end

local keys, n = #KEYS, tonumber(ARGV[3])
local rules, balances, found, taken, marked, before = {}, {}, {}, {}, {}, {}
for i = 1, keys do
  local a = 7 * i - 3
  local tag, r = ARGV[a], rule(a)
  local b = {owed = 0, last = 0, since = 0}
  if r.kind == 'l' or r.kind == 't' then b.past = only(0, 0) end
  local v = redis.call('GET', KEYS[i])
  if v then
    local kept, old = parse(v)
    if not kept then return {-2, i} end
    b = kept
    if kept.tag ~= tag then
      b = convert(r, kept, old)
    elseif (r.kind == 'w' or r.kind == 'v') and max(b.owed, r.kind == 'v' and b.since or 0) > r.most then
      return {-2, i}
    end
  end
  found[i] = {b.owed, b.last, b.since}
  measure(r, b)
  rules[i], balances[i], taken[i], marked[i] = r, b, 0, {}
end

local who, costs = 7 * keys + 3, 7 * keys + 4 + n
local granted = 0
for row = costs, #ARGV, n + 1 do
  for again = 1, tonumber(ARGV[row]) do
    local fits = true
    for i = 1, keys do before[i] = 0 end
    for j = 1, n do
      local i, cost = tonumber(ARGV[who + j]), tonumber(ARGV[row + j])
      local shadow = i < 0
      if shadow then i = -i end
      local r, b, need = rules[i], balances[i], before[i] + cost
      local counted = r.queue and before[i] or need
      if cost == 0 or counted <= b.room - taken[i] and cost <= r.quota then
        before[i] = need
      else
        fits = fits and shadow
        if cost <= r.quota - before[i] then
          local over = b.left and need - (b.left - taken[i]) or 0
          if over > 0 and over <= sum(b.past, b.first) then
            marked[i][covering(b.past, b.first, over)] = true
          end
          if not shadow then before[i] = need end
        end
      end
    end
    if not fits then break end -- nor will the next of the same
    granted = granted + 1
    for i = 1, keys do taken[i] = taken[i] + before[i] end
  end
end

local answer = {now, granted}
for i = 1, keys do
  local f, b = found[i], balances[i]
  for k = 1, 3 do answer[#answer + 1] = f[k] end
  if b.past then tell(answer, b, marked[i]) else answer[#answer + 1] = 0 end
end
if ARGV[2] == '1' then
  for i = 1, keys do
    if taken[i] > 0 then
      local r, b = rules[i], balances[i]
      take(r, b, taken[i])
      save(KEYS[i], ARGV[7 * i - 3], r, b, full(r, b))
    end
  end
end
return answer
