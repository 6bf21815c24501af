package contract

import (
	"math/rand/v2"
	"testing"
)

func TestAValueLiesInItsBucket(t *testing.T) {
	for range 100_000 {
		value := rand.Int64N(1<<rand.IntN(50)+1) + 2
		index := BucketIndex(value)
		if upperBound(index) < float64(value) || upperBound(index-1) >= float64(value) {
			t.Fatalf("%d is not in bucket %d (%g, %g]", value, index, upperBound(index-1), upperBound(index))
		}
	}
	for exponent := range 50 {
		if index := BucketIndex(1 << exponent); index != 64*exponent {
			t.Errorf("2^%d is in bucket %d", exponent, index)
		}
	}
}

func TestHistogramCounts(t *testing.T) {
	histogram := NewHistogram([]int64{1024, 1024, 2048})
	if histogram.Count != 3 || histogram.SumNanoseconds != 4096 || len(histogram.Indexes) != 2 || histogram.Counts[0] != 2 {
		t.Errorf("%+v", histogram)
	}
}
