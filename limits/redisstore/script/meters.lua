-- Decides about balances that are debts (token and leaky buckets), which most are. See script.go for the arguments and the
-- answer, and limits.Meter for the arithmetic. It answers {-1} when a balance was last counted in windows, and {-2, i} when
-- the i-th key holds something of somebody else's; nothing is written then. How a value is made up: see balances.lua. There are
-- no functions, for making them takes longer than what they would do.
local now, live = tonumber(ARGV[1]), false
if not now then
  local t = redis.call('TIME')
  now, live = tonumber(t[1]) * 1000000 + tonumber(t[2]), true
end
local floor = math.floor
local keys, n = #KEYS, tonumber(ARGV[3])
local answer = {now, 0}
local room, taken, owes, ats, begins = {}, {}, {}, {}, {}
for i = 1, keys do
  local a = 7 * i - 3
  local tag, drain, unit, bound, tick = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local owed, last, since = 0, 0, 0
  local v = redis.call('GET', KEYS[i])
  if v then
    local p = #tag
    local same = string.sub(v, 1, p) == tag
    local kind, lengths = string.byte(v, 1, 2)
    local drains, step = 0, 1
    if not same then -- find out where the numbers are
      if not lengths or not string.find('mMwvVlbt', string.char(kind), 1, true) or lengths > 63 or #v < 18 then
        return {-2, i}
      end
      if kind ~= 109 and kind ~= 77 then
        return {-1}
      end
      if kind == 77 then
        step = 1000
      end
      drains = floor(lengths / 8)
      p = 4 + drains + lengths % 8
    end
    local a1, a2, a3, a4, a5, a6, a7, b1, b2, b3, b4, b5, b6, b7 = string.byte(v, p + 1, p + 14)
    if not b7 or #v > p + 21 then
      return {-2, i}
    end
    last = (((((a1 * 256 + a2) * 256 + a3) * 256 + a4) * 256 + a5) * 256 + a6) * 256 + a7
    owed = (((((b1 * 256 + b2) * 256 + b3) * 256 + b4) * 256 + b5) * 256 + b6) * 256 + b7
    local ago = 0
    for q = p + 15, #v do
      ago = ago * 256 + string.byte(v, q)
    end
    since = last - ago
    if not same then -- the rule has changed: what was used stays used, rounded up
      local olddrain, oldunit = 0, 0
      for q = 3, 2 + drains do
        olddrain = olddrain * 256 + string.byte(v, q)
      end
      for q = 3 + drains, p - 2 do
        oldunit = oldunit * 256 + string.byte(v, q)
      end
      local at = math.max(now, last)
      at = at - at % step
      if at > last and floor((at - last) / step) * olddrain >= owed then
        owed = 0
      end
      if owed == 0 then
        since = 0
      else
        owed = math.min(math.ceil(owed / oldunit) * unit, tonumber(ARGV[a + 5]) or bound)
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
    owed = owed - floor((at - last) / tick) * drain
    if owed < 0 then
      owed = 0
    end
  end
  if owed == 0 then
    since = at
  end
  room[i], taken[i], owes[i], ats[i], begins[i] = floor((bound - owed) / unit), 0, owed, at, since
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
      local value = ARGV[a] .. string.char(
        floor(at / 281474976710656), floor(at / 1099511627776) % 256, floor(at / 4294967296) % 256, floor(at / 16777216) % 256,
        floor(at / 65536) % 256, floor(at / 256) % 256, at % 256,
        floor(owed / 281474976710656), floor(owed / 1099511627776) % 256, floor(owed / 4294967296) % 256, floor(owed / 16777216) % 256,
        floor(owed / 65536) % 256, floor(owed / 256) % 256, owed % 256)
      local ago = at - begins[i]
      if ago > 1099511627775 then
        value = value .. string.char(floor(ago / 281474976710656), floor(ago / 1099511627776) % 256)
      end
      if ago > 0 then
        value = value .. string.char(floor(ago / 4294967296) % 256, floor(ago / 16777216) % 256, floor(ago / 65536) % 256, floor(ago / 256) % 256, ago % 256)
      end
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
