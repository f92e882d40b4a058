package scenarios

import (
	"fmt"
	"strconv"
	"strings"
)

// Load is the load during one phase, as multiples of C; it moves linearly from the one to the other.
type Load struct{ From, To float64 }

// Loads are the loads of the phases. In YAML they are one number for all phases, or a list with one entry for each; an
// entry is a number, or "0.2..3" for a ramp.
type Loads []Load

// UnmarshalYAML reads the loads.
func (l *Loads) UnmarshalYAML(decode func(any) error) error {
	var v any
	if err := decode(&v); err != nil {
		return err
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, entry := range list {
		load, err := readLoad(fmt.Sprint(entry))
		if err != nil {
			return err
		}
		*l = append(*l, load)
	}
	return nil
}

func readLoad(text string) (Load, error) {
	from, to, ramp := strings.Cut(text, "..")
	if !ramp {
		to = from
	}
	a, err := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if err != nil || err2 != nil || !(a >= 0 && b >= 0 && a <= 1e6 && b <= 1e6) {
		return Load{}, fmt.Errorf("load %q: write a multiple of the capacity such as 1.2, or a ramp such as 0.2..3", text)
	}
	return Load{a, b}, nil
}

// In returns the load of phase i.
func (l Loads) In(i int) Load {
	switch {
	case len(l) == 0:
		return Load{}
	case len(l) == 1:
		return l[0]
	}
	return l[i]
}
