-- Decides about balances that are debts (token and leaky buckets), which most are. See script.go for the arguments and the
-- answer, and limits.Meter for the arithmetic. It answers {-1} when a balance was last counted in windows, and {-2, i} when
-- the i-th key holds something of somebody else's; nothing is written then.
local now, live = tonumber(ARGV[1]), false
if not now then
  local t = redis.call('TIME')
  now, live = tonumber(t[1]) * 1000000 + tonumber(t[2]), true
end
local keys, n = #KEYS, tonumber(ARGV[3])
local answer = {now, 0}
local room, taken, owes, ats, begins = {}, {}, {}, {}, {}
for i = 1, keys do
  local a = 7 * i - 3
  local tag, drain, unit, bound, tick = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local owed, last, since = 0, 0, 0
  local v = redis.call('GET', KEYS[i])
  if v then
    local t, o, l, ago = string.match(v, '^(%S+) (%d+) (%d+) (%d+)$')
    if t == tag then
      owed, last = tonumber(o), tonumber(l)
      since = last - tonumber(ago)
    else -- the rule has changed: what was used stays used, rounded up
      local kind, d, u = string.match(t or v, '^(%a)(%w+)%.(%w+)%.%w+')
      if not kind or kind ~= 'm' and kind ~= 'M' then
        if string.match(v, '^[wWvVlbt][%w%.]+ %d+ %d+ %d+') then
          return {-1}
        end
        return {-2, i}
      end
      owed, last, since = tonumber(o), tonumber(l), tonumber(l) - tonumber(ago)
      local step = kind == 'M' and 1000 or 1
      local at = math.max(now, last)
      at = at - at % step
      if at > last and math.floor((at - last) / step) * tonumber(d, 36) >= owed then
        owed = 0
      end
      if owed == 0 then
        since = 0
      else
        owed = math.min(math.ceil(owed / tonumber(u, 36)) * unit, tonumber(ARGV[a + 5]) or bound)
        since = since - since % tick
      end
      last = math.ceil(last / tick) * tick
    end
  end
  local c = 4 * i - 1
  answer[c], answer[c + 1], answer[c + 2], answer[c + 3] = owed, last, since, 0
  local at = now
  if last > at then
    at = last
  end
  if tick > 1 then
    at = at - at % tick
  end
  if at > last then
    owed = owed - math.floor((at - last) / tick) * drain
    if owed < 0 then
      owed = 0
    end
  end
  if owed == 0 then
    since = at
  end
  room[i], taken[i], owes[i], ats[i], begins[i] = math.floor((bound - owed) / unit), 0, owed, at, since
end

local who, costs = 7 * keys + 3, 7 * keys + 3 + n
local granted, before = 0, {}
for row = costs, #ARGV - 1, n do
  local fits = true
  for i = 1, keys do
    before[i] = 0
  end
  for j = 1, n do
    local i, cost = tonumber(ARGV[who + j]), tonumber(ARGV[row + j])
    local shadow = i < 0
    if shadow then
      i = -i
    end
    local a, need = 7 * i - 3, before[i] + cost
    local counted = ARGV[a + 5] == '' and need or before[i] -- in a queue what is ahead
    if cost == 0 or counted <= room[i] and cost <= tonumber(ARGV[a + 6]) then
      before[i] = need
    elseif not shadow then
      fits = false
      break
    end
  end
  if fits then
    granted = granted + 1
    for i = 1, keys do
      taken[i], room[i] = taken[i] + before[i], room[i] - before[i]
    end
  end
end
answer[2] = granted

if ARGV[2] == '1' then
  for i = 1, keys do
    if taken[i] > 0 then
      local a, at = 7 * i - 3, ats[i]
      local owed = owes[i] + taken[i] * tonumber(ARGV[a + 2])
      local value = string.format('%s %.0f %.0f %.0f', ARGV[a], owed, at, at - begins[i])
      if live then
        local over = at + math.ceil(owed / tonumber(ARGV[a + 1])) * tonumber(ARGV[a + 4])
        redis.call('SET', KEYS[i], value, 'PXAT', string.format('%.0f', math.ceil(over / 1000)))
      else
        redis.call('SET', KEYS[i], value)
      end
    end
  end
end
return answer
