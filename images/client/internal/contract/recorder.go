package contract

const moreBuckets = 512 // eight doublings

// Recorder counts values by bucket, so the cost of a value does not depend on the number of values.
type Recorder struct {
	counts     []int64
	count, sum int64
}

// Add adds a value in nanoseconds, and returns its bucket.
func (r *Recorder) Add(value int64) int {
	index := BucketIndex(value)
	if index >= len(r.counts) {
		r.counts = append(r.counts, make([]int64, index+moreBuckets-len(r.counts))...)
	}
	r.counts[index]++
	r.count++
	r.sum += value
	return index
}

// Take returns the histogram of the values since the last call, or nil if there were none.
func (r *Recorder) Take() *Histogram {
	if r.count == 0 {
		return nil
	}
	taken := &Histogram{Schema: schema, Count: r.count, SumNanoseconds: r.sum}
	for index, count := range r.counts {
		if count > 0 {
			taken.Indexes, taken.Counts = append(taken.Indexes, index), append(taken.Counts, count)
		}
	}
	clear(r.counts)
	r.count, r.sum = 0, 0
	return taken
}

// MergeHistograms returns the sum of two histograms. nil means an empty histogram.
func MergeHistograms(one, other *Histogram) *Histogram {
	if one == nil {
		return other
	}
	if other == nil {
		return one
	}
	merged := &Histogram{Schema: one.Schema, Count: one.Count + other.Count, SumNanoseconds: one.SumNanoseconds + other.SumNanoseconds}
	left, right := 0, 0
	for left < len(one.Indexes) || right < len(other.Indexes) {
		switch {
		case right == len(other.Indexes) || left < len(one.Indexes) && one.Indexes[left] < other.Indexes[right]:
			merged.Indexes = append(merged.Indexes, one.Indexes[left])
			merged.Counts = append(merged.Counts, one.Counts[left])
			left++
		case left == len(one.Indexes) || other.Indexes[right] < one.Indexes[left]:
			merged.Indexes = append(merged.Indexes, other.Indexes[right])
			merged.Counts = append(merged.Counts, other.Counts[right])
			right++
		default:
			merged.Indexes = append(merged.Indexes, one.Indexes[left])
			merged.Counts = append(merged.Counts, one.Counts[left]+other.Counts[right])
			left, right = left+1, right+1
		}
	}
	return merged
}
