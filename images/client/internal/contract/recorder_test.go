package contract

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestRecorderCountsLikeHistogram(t *testing.T) {
	var recorder Recorder
	var total *Histogram
	values := make([]int64, 0, 100_000)
	for number := range cap(values) {
		value := rand.Int64N(1 << rand.IntN(40))
		values = append(values, value)
		if index := recorder.Add(value); index != BucketIndex(value) {
			t.Fatalf("%d is counted in bucket %d", value, index)
		}
		if number%30_000 == 0 {
			total = MergeHistograms(total, recorder.Take())
		}
	}
	total = MergeHistograms(total, recorder.Take())
	if !reflect.DeepEqual(total, NewHistogram(values)) {
		t.Error("the merged histograms are not the whole")
	}
	if recorder.Take() != nil {
		t.Error("an empty recorder has a histogram")
	}
}

// TestRecorderDoesNotAllocate: kept values would need sorting in the measured path.
func TestRecorderDoesNotAllocate(t *testing.T) {
	var recorder Recorder
	recorder.Add(1e9)
	if allocated := testing.AllocsPerRun(1000, func() {
		for value := range int64(100) {
			recorder.Add(value * 1e7)
		}
	}); allocated != 0 {
		t.Errorf("%.1f allocations", allocated)
	}
}
