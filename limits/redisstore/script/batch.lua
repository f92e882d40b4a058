-- Makes decisions about balances that are debts, as most are: any number, one after the other and all at one time, so that they
-- share the time, the reply and the run of a script. ARGV[1] is a list of runs, ARGV[2] the time in µs if it is not the
-- server's. The decisions of a run differ in nothing but their keys. A run has, each number most significant byte first:
--
--   1 byte       how many keys each decision has
--   3 bytes      how many decisions there are; their keys are the next in KEYS
--   4 bytes      how often each is asked for; 0 only looks
--   for each key: 1 byte for the length of its rule's tag; the tag; in 7 bytes each the rule's drain, unit, bound, tick and
--   highest cost; a byte that is 1 for a queue and 0 for others; 7 bytes for the cost, and a byte that is 1 for a shadow
--
-- The answer is the time, how many were granted, and for each key the value that its decision found: nil if there is none, and
-- '?' where it is not that of a debt with this very tag. Then the decision writes nothing, for another script to make it. See
-- limits.Meter for the arithmetic, and balances.lua for how a value is made up.
local call, try, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local floor, ceil, format, sub = math.floor, math.ceil, string.format, string.sub
local now, live = tonumber(ARGV[2]), false
if not now then
  local t = call('TIME')
  now, live = t[1] * 1000000 + t[2], true
end
local keys, runs = KEYS, ARGV[1]
local answer, granted, before, at = {now, 0}, 0, 0, 1
local rules, found -- of decisions with several keys; what has one key needs no tables

while at <= #runs do
  local each, count, times, tag, drain, unit, bound, tick, highest, queue, cost, shadow
  each, count, times, at = unpack('>I1I3I4', runs, at)
  if each > 1 then
    rules, found = {}, {}
  end
  for i = 1, each do
    tag, drain, unit, bound, tick, highest, queue, cost, shadow, at = unpack('>I1c0I7I7I7I7I7I1I7I1', runs, at)
    if each > 1 then
      rules[i], found[i] = {tag, drain, unit, bound, tick, highest, queue, cost, shadow}, {}
    end
  end
  for _ = 1, count do
    local fit, fits, owed, last, since = times, 0, 0, 0, 0
    for i = 1, each do
      if each > 1 then
        local r = rules[i]
        tag, drain, unit, bound, tick, highest, queue, cost, shadow = r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9]
      end
      local known, v = true, try('GET', keys[before + i])
      owed, last, since = 0, 0, 0
      if v then
        local n = #tag
        local rest, ago = #v - n, 0
        known = (rest == 14 or rest == 19 or rest == 21) and sub(v, 1, n) == tag
        if known then
          if rest == 14 then
            last, owed = unpack('>I7I7', v, n + 1)
          elseif rest == 19 then
            last, owed, ago = unpack('>I7I7I5', v, n + 1)
          else
            last, owed, ago = unpack('>I7I7I7', v, n + 1)
          end
          since = last - ago
          known = since >= 0 and last <= 9007199254740992 and owed <= 9007199254740992
        end
      end
      if known then
        answer[before + i + 2] = v
        local t = now
        if last > t then
          t = last
        end
        if tick > 1 then
          t = t - t % tick
        end
        if t > last then
          owed = owed - floor((t - last) / tick) * drain
          if owed < 0 then
            owed = 0
          end
          last = t
        end
        if owed == 0 then
          since = last
        end
        fits = times
        if cost > 0 then
          local room = bound - owed
          if room < 0 or cost > highest then
            fits = 0
          else
            room = floor(floor(room / unit) / cost) + queue -- in a queue what is ahead counts: one more fits
            if room < times then
              fits = room
            end
          end
        end
        if fits < fit and shadow == 0 then
          fit = fits
        end
      else
        answer[before + i + 2], fit, fits = '?', -1, 0
      end
      if each > 1 then
        local f = found[i]
        f[1], f[2], f[3], f[4] = fits, owed, last, since
      end
    end
    if fit > 0 then
      granted = granted + fit
      for i = 1, each do
        if each > 1 then
          local r, f = rules[i], found[i]
          tag, drain, unit, tick, cost = r[1], r[2], r[3], r[5], r[8]
          fits, owed, last, since = f[1], f[2], f[3], f[4]
        end
        if fits > fit then
          fits = fit
        end
        if fits * cost > 0 then
          owed = owed + fits * cost * unit
          local v, ago = nil, last - since
          if ago == 0 then
            v = tag .. pack('>I7I7', last, owed)
          elseif ago < 1099511627776 then
            v = tag .. pack('>I7I7I5', last, owed, ago)
          else
            v = tag .. pack('>I7I7I7', last, owed, ago)
          end
          if live then
            call('SET', keys[before + i], v, 'PXAT', format('%.0f', ceil((last + ceil(owed / drain) * tick) / 1000)))
          else
            call('SET', keys[before + i], v)
          end
        end
      end
    end
    before = before + each
  end
end
answer[2] = granted
return answer
