// Package storetest answers the question: does this store keep the promises of limits.Store?
//
// A store's own test calls [Run] with a function that opens an empty store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) limits.Store {
//			s := mystore.Open(t.TempDir())
//			t.Cleanup(s.Close)
//			return s
//		})
//	}
//
// The suite never sleeps: it moves time by the now that it passes. A store with a clock of its own needs an adapter that
// sets that clock to the now of each call. Times step back now and then, by up to a second, as they do between goroutines;
// larger steps back touch one balance only.
//
// Each promise is a check of its own, named after what must hold. The random transcripts are compared, field by field,
// with a model that computes the rules in rational numbers, from their definition and independently of package limits.
// That the checks can fail is tested too: stores with one flaw each must be caught.
package storetest
