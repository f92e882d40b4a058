package queue

// depths counts waiters by their depth, which is 1 for the first of each client, 2 for the second and so on. It answers how
// many stand at depth k or less, which is how many are served while each client gets k turns, in O(log n): a Fenwick tree.
type depths struct {
	tree []int // tree[i] holds the sum of the depths (i - lowest bit of i, i]; tree[0] is not used
}

// add counts n more waiters at depth d, which is at least 1.
func (s *depths) add(d, n int) {
	if d >= len(s.tree) {
		s.grow(d)
	}
	for ; d < len(s.tree); d += d & -d {
		s.tree[d] += n
	}
}

// upTo returns how many stand at depth k or less.
func (s *depths) upTo(k int) int {
	sum := 0
	for k = min(k, len(s.tree)-1); k > 0; k -= k & -k {
		sum += s.tree[k]
	}
	return sum
}

// grow makes room for depth d, at least doubling. With a size that is a power of two the new half is empty except for its
// last node, which covers everything.
func (s *depths) grow(d int) {
	size := max(8, len(s.tree)-1)
	if s.tree == nil {
		s.tree = make([]int, size+1)
	}
	for size < d {
		total := s.tree[size]
		s.tree = append(s.tree, make([]int, size)...)
		size *= 2
		s.tree[size] = total
	}
}
