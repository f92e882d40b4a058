package concurrency

// Config chooses how the limit on concurrent work is found. The zero value is Gradient2 between 4 and 500, starting at 20.
type Config struct {
	// Algorithm is "gradient2" or "fixed"; empty means gradient2.
	Algorithm string
	// Min and Max bound the limit; zero means 4 and 500. A fixed limit is Initial.
	Min, Max int
	// Initial is where the limit starts; zero means 20, moved into [Min, Max].
	Initial int
}
