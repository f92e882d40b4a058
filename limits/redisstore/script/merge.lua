-- Adds what processes have admitted on their own to balances that are debts, whether it fits or not, and tells what is owed then.
--
-- ARGV: the time or '', then for each key its rule's tag, how much was admitted, when that began, and what would be owed had there
-- been nothing else: how much, at which time, and since when. Where nobody else has charged the balance since it began, the two
-- debts are one exactly: time pays for the one that was there, and what is left of it for the other. Otherwise it is as if all had
-- been admitted now. A balance whose rule has changed is charged in the rule that it is counted in.
--
-- The answer is the time, and for each key: 1, or 0 if it is counted in another rule, or -1 if the key holds something else; what
-- is owed, at which time, and since when.
local answer = {now}
for i = 1, #KEYS do
  local a = 6 * i - 4
  local tag, amount, began = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local alone = {owed = tonumber(ARGV[a + 3]), last = tonumber(ARGV[a + 4]), since = tonumber(ARGV[a + 5])}
  local v = redis.call('GET', KEYS[i])
  local b, r
  if v then
    b, r = parse(v)
  else
    b, r = {owed = 0, last = 0, since = 0, tag = tag}, (reading(tag))
  end
  local n = 4 * i - 2
  if not b or r.kind ~= 'm' then
    answer[n], answer[n + 1], answer[n + 2], answer[n + 3] = b and 0 or -1, 0, 0, 0
  else
    local same = b.tag == tag
    local at = clock(r, b, now)
    local owed, since = drained(r, b, at), b.since
    began = began - began % r.tick
    if owed == 0 then since = at end
    if amount > 0 then
      if same and b.last <= began and began <= at then
        local before, own = drained(r, b, began), drained(r, alone, at)
        owed = before + amount * r.unit - floor((at - began) / r.tick) * r.drain
        if before > 0 then since = b.since end
        if before == 0 or owed < own then owed, since = own, min(alone.since, at) end
      else
        owed = owed + amount * r.unit
      end
      owed = max(0, min(owed, 9007199254740992))
      if owed == 0 then since = at end
      local after = {owed = owed, last = at, since = since}
      if owed > 0 then save(KEYS[i], b.tag, r, after, full(r, after)) end
    end
    answer[n], answer[n + 1], answer[n + 2], answer[n + 3] = same and 1 or 0, owed, at, since
  end
end
return answer
