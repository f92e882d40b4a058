package redisstore

// Check returns what Open and New would find wrong with an address and a configuration, without making anything.
func Check(address string, config Config) error {
	client, err := Open(address, Options{lazy: true})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := New(client, config)
	if err != nil {
		return err
	}
	return s.Close()
}
