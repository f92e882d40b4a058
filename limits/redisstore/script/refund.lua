-- Gives back what was charged, each to the balance as it stands and by the rule it is counted in now. ARGV: the time or '',
-- then for each key how much and when that was taken. It answers {0}, or the index of a key that holds something of
-- somebody else's.

-- giveBack takes out of a spell what was charged at taken, and reports whether any of it still counts.
local function giveBack(r, s, cost, taken)
  taken = start(taken, r.per)
  if s.first == 0 then return false end
  if s.ago > 0 and s.here > 0 and taken == s.begin then
    s.here = s.here - min(s.here, cost)
  elseif taken == s.begin - s.ago * r.per then
    s.first = s.first - min(s.first, cost)
    if s.ago > 0 and debt(r, s) <= 0 then s.first, s.ago, s.here = s.here, 0, 0 end
  else
    return false
  end
  return true
end

-- reduce takes up to amount out of the i-th entry.
local function reduce(p, i, amount)
  local inside = upto(p, i) - upto(p, i - 1)
  amount = min(amount, inside)
  local parts = {string.sub(p.s, 1, 14 * (i - 1))}
  for j = i, p.n do
    if j > i or amount < inside then parts[#parts + 1] = bytes(time(p, j)) .. bytes(upto(p, j) - amount) end
  end
  local s = table.concat(parts)
  return {s = s, n = #s / 14, before = p.before}
end

-- refund returns the balance after a refund, or nil if time has given it back already.
local function refund(r, b, cost, taken)
  local at = clock(r, b, now)
  if r.kind == 'm' then
    local owed = drained(r, b, at)
    if owed == 0 or taken < b.since then return nil end
    return {owed = owed - min(owed, cost * r.unit), last = at, since = b.since}
  end
  if r.kind == 'w' then
    if b.owed == 0 or start(b.last, r.per) ~= start(at, r.per) or taken < b.since then return nil end
    return {owed = b.owed - min(b.owed, cost), last = at, since = b.since}
  end
  if r.kind == 'v' then
    local current, previous = counters(r, b, at)
    local ago = start(at, r.per) - start(taken, r.per)
    if ago == 0 and current > 0 then
      current = current - min(current, cost)
    elseif ago == r.per and previous > 0 then
      previous = previous - min(previous, cost)
    else
      return nil
    end
    return {owed = current, last = at, since = previous}
  end
  if r.kind == 'l' then
    local i = from(b.past, taken)
    if taken <= at - r.per or i > b.past.n then return nil end
    local p = reduce(b.past, i, cost)
    return {owed = 0, last = at, since = 0, past = forget(p, oldest(r, p, at))}
  end
  local s = spell(r, b, now)
  local given = giveBack(r, s, cost, taken)
  local p = b.past
  if p then
    local period = start(taken, r.per)
    local i = from(p, period)
    if period > s.begin - r.run * r.per and i <= p.n then
      p = reduce(p, i, cost)
      given = true
    end
  end
  if not given then return nil end
  return together(r, s, p)
end

local wrong = 0
for i = 1, #KEYS do
  local v = redis.call('GET', KEYS[i])
  if v then
    local b, r = parse(v)
    if b then
      local after = refund(r, b, tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1]))
      if after then save(KEYS[i], b.tag, r, after, max(full(r, after), now)) end
    else
      wrong = i
    end
  end
end
return {wrong}
