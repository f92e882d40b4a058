-- Counts who is there: KEYS[1] holds "id=until," for each instance, until in ms. ARGV: the caller's id, and for how many ms it
-- is there; 0 says that it is gone.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local id, lasts = ARGV[1], tonumber(ARGV[2])
local all, n, last = '', 0, 0
for other, untilText in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%w+)=(%d+),') do
  local ends = tonumber(untilText)
  -- A time far ahead is that of a clock that has stepped back since.
  if other ~= id and ends > now and ends < now + 3600000 and n < 10000 then
    all, n, last = all .. other .. '=' .. untilText .. ',', n + 1, math.max(last, ends)
  end
end
if lasts > 0 then
  local ends = now + lasts
  all, n, last = all .. id .. '=' .. string.format('%.0f', ends) .. ',', n + 1, math.max(last, ends)
end
if n > 0 then
  redis.call('SET', KEYS[1], all, 'PX', string.format('%.0f', last - now))
else
  redis.call('SET', KEYS[1], '', 'PX', '1')
end
return {n}
