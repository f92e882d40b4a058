package queue

// heap is a binary heap whose elements know their place in it, so that any of them can be moved or taken out in O(log n).
// It allocates only when it grows beyond what it has held before.
type heap[T comparable] struct {
	all    []T
	before func(a, b T) bool // a strict order
	place  func(T) *int      // where an element keeps its index
}

func (h *heap[T]) len() int { return len(h.all) }

func (h *heap[T]) push(x T) {
	h.all = append(h.all, x)
	*h.place(x) = len(h.all) - 1
	h.up(len(h.all) - 1)
}

// remove takes out x, which must be in the heap.
func (h *heap[T]) remove(x T) {
	i, last := *h.place(x), len(h.all)-1
	h.swap(i, last)
	var none T
	h.all[last] = none // keeps nothing alive
	h.all = h.all[:last]
	if i < last {
		h.fix(h.all[i])
	}
}

// fix puts x back in order after what it is compared by has changed.
func (h *heap[T]) fix(x T) {
	i := *h.place(x)
	h.up(i)
	if *h.place(x) == i {
		h.down(i)
	}
}

// reorder puts everything in order after the order itself has changed, in O(n).
func (h *heap[T]) reorder() {
	for i := len(h.all)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.all[i], h.all[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap[T]) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.all); child++ {
			if h.before(h.all[child], h.all[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h *heap[T]) swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	*h.place(h.all[i]), *h.place(h.all[j]) = i, j
}
