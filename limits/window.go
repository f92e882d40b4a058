package limits

import (
	"errors"
	"fmt"
	"time"
)

// checkQuota returns what is wrong with the quota of a rule that counts in windows. Unlike that of a bucket its amount may
// be 0: the window is known, and nothing passes in it.
func checkQuota(r Rate) error {
	if r.Amount == 0 && r.Per != 0 {
		r.Amount = 1
		return r.check()
	}
	switch err := r.check(); {
	case err != nil:
		return err
	case r.Amount > Exact:
		return fmt.Errorf("a quota of %d is above 2^53; lower it", r.Amount)
	case r.Per > longest:
		return errors.New("a window of more than 50 years never passes; shorten it")
	}
	return nil
}

// micro is a period in µs.
func micro(d time.Duration) int64 { return int64(d / time.Microsecond) }

// start returns when the window of length per begins that at, which is not negative, lies in.
func start(at, per int64) int64 { return at - at%per }
