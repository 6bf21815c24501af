package broker

import "tierbench.io/client/internal/contract"

const (
	batchLeast     = 5   // operations of a batch
	mostBatches    = 256 // of a series; beyond it each two become one
	segmentBatches = 8   // whose distributions are kept together
	leastBatches   = 40  // for a verdict
)

// series holds the round trips of a pair over time: the sums of the logarithms of batches, and the distributions of each segment
// of batches. Its size is bounded.
type series struct {
	size     int // operations of a batch
	sums     []int64
	filling  int64 // the sum of the batch that is not yet complete
	filled   int
	segments []*contract.Distributions
}

func newSeries() *series { return &series{size: batchLeast} }

// add adds the logarithm of an operation. It reports whether a segment is complete and must be sealed.
func (s *series) add(logarithm int64) bool {
	s.filling += logarithm
	if s.filled++; s.filled < s.size {
		return false
	}
	s.sums = append(s.sums, s.filling)
	s.filling, s.filled = 0, 0
	return len(s.sums)%segmentBatches == 0
}

// seal keeps the distributions of the complete segment.
func (s *series) seal(segment *contract.Distributions) {
	s.segments = append(s.segments, segment)
	if len(s.sums) < mostBatches {
		return
	}
	s.sums, s.size = coarser(s.sums, 2), 2*s.size
	for index := 0; index < len(s.segments); index += 2 {
		merge(s.segments[index], s.segments[index+1])
		s.segments[index/2] = s.segments[index]
	}
	s.segments = s.segments[:len(s.segments)/2]
}

// discard drops the segments that begin within the first operations. It returns the number of their round trips, or of their
// acknowledgements if no message returns.
func (s *series) discard(operations int) (discarded int64) {
	segment := s.size * segmentBatches
	dropped := min((operations+segment-1)/segment, len(s.segments))
	for _, one := range s.segments[:dropped] {
		switch {
		case one.RoundTrip != nil:
			discarded += one.RoundTrip.Count
		case one.Acknowledge != nil:
			discarded += one.Acknowledge.Count
		}
	}
	s.segments = s.segments[dropped:]
	return discarded
}

// coarser sums each group of factor neighbours. It drops the rest.
func coarser(sums []int64, factor int) []int64 {
	made := make([]int64, len(sums)/factor, mostBatches)
	for index := range made {
		for _, sum := range sums[index*factor : (index+1)*factor] {
			made[index] += sum
		}
	}
	return made
}

// warmUp returns how many operations of each pair precede the steady state. steady is nil if there are too few
// operations. It is false if the load was not steady: then no operations are left out.
//
// It is MSER-5 (White, Simulation 69, 1997; Hoad, Robinson and Davies, JORS 61, 2010) of all pairs' means, batch by batch.
// The means are of logarithms, so that one stall is not a trend.
func warmUp(pairs []*series) (operations int, steady *bool) {
	size := batchLeast
	for _, one := range pairs {
		size = max(size, one.size)
	}
	var total []int64
	for index, one := range pairs {
		sums := coarser(one.sums, size/one.size)
		if index == 0 {
			total = make([]int64, len(sums))
		}
		total = total[:min(len(total), len(sums))]
		for batch := range total {
			total[batch] += sums[batch]
		}
	}
	if len(total) < leastBatches {
		return 0, nil
	}
	before := truncation(total)
	is := before <= len(total)/2
	if !is {
		return 0, &is
	}
	return before * size, &is
}

// truncation returns the number of values to leave out so that the standard error of the mean of the others is least. It keeps at
// least a quarter (the MSER statistic).
func truncation(values []int64) int {
	var sum, squares, least float64
	best := len(values)
	for index := len(values) - 1; index >= 0; index-- {
		value := float64(values[index] - values[len(values)-1])
		sum, squares = sum+value, squares+value*value
		number := float64(len(values) - index)
		statistic := (squares - sum*sum/number) / (number * number)
		if len(values)-index >= len(values)/4 && (best == len(values) || statistic <= least) {
			best, least = index, statistic
		}
	}
	return best
}

// merge adds other's distributions to total.
func merge(total, other *contract.Distributions) {
	total.RoundTrip = contract.MergeHistograms(total.RoundTrip, other.RoundTrip)
	total.RoundTripActual = contract.MergeHistograms(total.RoundTripActual, other.RoundTripActual)
	total.Acknowledge = contract.MergeHistograms(total.Acknowledge, other.Acknowledge)
}
