-- Decides about balances that are debts (token and leaky buckets), which most are. See script.go for the arguments and the
-- answer, and limits.Meter for the arithmetic. It answers {-1} when a balance was last counted in windows, and {-2, i} when
-- the i-th key holds something of somebody else's; nothing is written then. How a value is made up: see balances.lua. There are
-- no functions, for making them takes longer than what they would do.
local now, live = tonumber(ARGV[1]), false
if not now then
  local t = redis.call('TIME')
  now, live = tonumber(t[1]) * 1000000 + tonumber(t[2]), true
end
local floor, byte, char, call = math.floor, string.byte, string.char, redis.call
local keys, n = #KEYS, tonumber(ARGV[3])
local answer = {now, 0}
local room, taken, owes, ats, begins = {}, {}, {}, {}, {}
for i = 1, keys do
  local a = 7 * i - 3
  local tag, drain, unit, bound, tick = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local owed, last, since = 0, 0, 0
  local v = call('GET', KEYS[i])
  if v then
    local p = #tag
    local same = string.sub(v, 1, p) == tag
    local kind, lengths = byte(v, 1, 2)
    local drains, step = 0, 1
    if not same then -- find out where the numbers are
      if not lengths or not string.find('mMwvVlbt', char(kind), 1, true) or lengths > 63 or #v < 18 then
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
    local a1, a2, a3, a4, a5, a6, a7, b1, b2, b3, b4, b5, b6, b7 = byte(v, p + 1, p + 14)
    if not b7 or #v > p + 21 then
      return {-2, i}
    end
    last = (((((a1 * 256 + a2) * 256 + a3) * 256 + a4) * 256 + a5) * 256 + a6) * 256 + a7
    owed = (((((b1 * 256 + b2) * 256 + b3) * 256 + b4) * 256 + b5) * 256 + b6) * 256 + b7
    local ago = 0
    for q = p + 15, #v do
      ago = ago * 256 + byte(v, q)
    end
    since = last - ago
    if since < 0 or last > 9007199254740992 or owed > 9007199254740992 then
      return {-2, i}
    end
    if not same then -- the rule has changed: what was used stays used, rounded up
      local olddrain, oldunit = 0, 0
      for q = 3, 2 + drains do
        olddrain = olddrain * 256 + byte(v, q)
      end
      for q = 3 + drains, p - 2 do
        oldunit = oldunit * 256 + byte(v, q)
      end
      if olddrain == 0 or oldunit == 0 then
        return {-2, i}
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

local who, costs = 7 * keys + 3, 7 * keys + 4 + n
local granted, before = 0, {}
for row = costs, #ARGV, n + 1 do
  local times = tonumber(ARGV[row])
  if n == 1 then -- how often it fits is a division
    local cost, shadow, queue = tonumber(ARGV[row + 1]), ARGV[who + 1] == '-1', ARGV[9] ~= ''
    local fit = times
    if cost > tonumber(ARGV[10]) or room[1] < 0 then
      fit = 0
    elseif cost > 0 then
      fit = floor(room[1] / cost)
      if queue then -- what is ahead counts
        fit = fit + 1
      end
      if fit > times then
        fit = times
      end
    end
    if cost == 0 then
      fit = times
    end
    taken[1], room[1] = taken[1] + fit * cost, room[1] - fit * cost
    granted, times = granted + (shadow and times or fit), 0
  end
  for again = 1, times do
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
      local counted = ARGV[a + 5] == '' and need or before[i]
      if cost == 0 or counted <= room[i] and cost <= tonumber(ARGV[a + 6]) then
        before[i] = need
      elseif not shadow then
        fits = false
        break
      end
    end
    if not fits then -- nor will the next of the same
      break
    end
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
      local x, y, ago = at, owed, at - begins[i]
      local a7 = x % 256; x = (x - a7) / 256
      local a6 = x % 256; x = (x - a6) / 256
      local a5 = x % 256; x = (x - a5) / 256
      local a4 = x % 256; x = (x - a4) / 256
      local a3 = x % 256; x = (x - a3) / 256
      local a2 = x % 256; x = (x - a2) / 256
      local b7 = y % 256; y = (y - b7) / 256
      local b6 = y % 256; y = (y - b6) / 256
      local b5 = y % 256; y = (y - b5) / 256
      local b4 = y % 256; y = (y - b4) / 256
      local b3 = y % 256; y = (y - b3) / 256
      local b2 = y % 256; y = (y - b2) / 256
      local value = ARGV[a] .. char(x, a2, a3, a4, a5, a6, a7, y, b2, b3, b4, b5, b6, b7)
      if ago > 0 then
        local c7 = ago % 256; ago = (ago - c7) / 256
        local c6 = ago % 256; ago = (ago - c6) / 256
        local c5 = ago % 256; ago = (ago - c5) / 256
        local c4 = ago % 256; ago = (ago - c4) / 256
        local c3 = ago % 256; ago = (ago - c3) / 256
        if ago > 0 then
          value = value .. char(floor(ago / 256), ago % 256, c3, c4, c5, c6, c7)
        else
          value = value .. char(c3, c4, c5, c6, c7)
        end
      end
      if live then
        local over = at + math.ceil(owed / tonumber(ARGV[a + 1])) * tonumber(ARGV[a + 4])
        call('SET', KEYS[i], value, 'PXAT', string.format('%.0f', math.ceil(over / 1000)))
      else
        call('SET', KEYS[i], value)
      end
    end
  end
end
return answer
