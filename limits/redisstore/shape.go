package redisstore

import "github.com/spillway-go/spillway/limits"

// shape is what decisions have in common that can be one call: the policies, keys and shadows, in order.
type shape struct {
	policies [inline]*limits.Policy
	keys     [2]string
	second   uint8 // which charges have the second key
	shadows  uint8
	now      string // that the script is told
}

// is reports whether charges have the shape. It may say no to some that have.
func (s *shape) is(charges []limits.Charge, now string) bool {
	if len(charges) != 1 || s.now != now {
		return false
	}
	c := &charges[0]
	return s.policies[0] == c.Policy && s.policies[1] == nil && s.keys[0] == c.Key && (s.shadows != 0) == c.Shadow
}

// place is how a shape begins.
type place struct {
	policy *limits.Policy
	key    string
}

func (s *shape) place() place { return place{s.policies[0], s.keys[0]} }

// shapeOf returns the shape of charges, of which there is at least one, unless it has too many charges or keys for one.
func shapeOf(charges []limits.Charge, now string) (s shape, ok bool) {
	if len(charges) > inline {
		return s, false
	}
	s.keys[0], s.now = charges[0].Key, now
	two := false
	for i := range charges {
		c := &charges[i]
		s.policies[i] = c.Policy
		if c.Shadow {
			s.shadows |= 1 << i
		}
		if c.Key == s.keys[0] {
			continue
		}
		if two && c.Key != s.keys[1] {
			return s, false
		}
		two = true
		s.keys[1] = c.Key
		s.second |= 1 << i
	}
	return s, true
}
