package contract

// Series numbers the trials of a run.
type Series struct {
	Warmup      int // trials that do not count, before the others
	First, Last int // trials that count, from 1
}

// Each runs trial after trial, until one ends the series early.
func (s Series) Each(run func(number int, warmup bool) error) error {
	for number := 1; number <= s.Warmup; number++ {
		if err := run(number, true); err != nil {
			return err
		}
	}
	for number := s.First; number <= s.Last; number++ {
		if err := run(number, false); err != nil {
			return err
		}
	}
	return nil
}
