package contract

const recorderBatch = 1 << 14

// Recorder collects values for a histogram: cheap while a trial runs, and of bounded size however long it is.
type Recorder struct {
	values []int64
	total  *Histogram
}

// NewRecorder is empty.
func NewRecorder() *Recorder { return &Recorder{values: make([]int64, 0, 256)} }

// Add takes in a value in nanoseconds.
func (r *Recorder) Add(value int64) {
	if len(r.values) == recorderBatch {
		r.flush()
	}
	r.values = append(r.values, value)
}

func (r *Recorder) flush() {
	r.total = MergeHistograms(r.total, NewHistogram(r.values))
	r.values = r.values[:0]
}

// Histogram of all values so far; nil if there are none.
func (r *Recorder) Histogram() *Histogram {
	if len(r.values) > 0 {
		r.flush()
	}
	return r.total
}

// MergeHistograms adds up; nil stands for an empty one.
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
