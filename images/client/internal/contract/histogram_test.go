package contract

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestValueLiesInItsBucket(t *testing.T) {
	for range 100_000 {
		value := rand.Int64N(1<<rand.IntN(50)+1) + 2
		index := BucketIndex(value)
		below, above := math.Exp2(float64(index-1)/64), math.Exp2(float64(index)/64)
		if above < float64(value) || below >= float64(value) {
			t.Fatalf("%d is not in bucket %d (%g, %g]", value, index, below, above)
		}
	}
}

func TestBoundBelongsToLowerBucket(t *testing.T) {
	for exponent := range 50 {
		bound := int64(1) << exponent
		if index := BucketIndex(bound); index != 64*exponent {
			t.Errorf("2^%d is in bucket %d, want %d", exponent, index, 64*exponent)
		}
		if index := BucketIndex(bound + 1); bound > 100 && index != 64*exponent+1 {
			t.Errorf("2^%d + 1 is in bucket %d, want %d", exponent, index, 64*exponent+1)
		}
	}
	for index := 1000; index < 50*64; index++ {
		below := int64(math.Floor(math.Exp2(float64(index) / 64)))
		if index%64 == 0 {
			continue
		}
		if at, above := BucketIndex(below), BucketIndex(below+1); at != index || above != index+1 {
			t.Errorf("%d and %d about 2^(%d/64) are in buckets %d and %d", below, below+1, index, at, above)
		}
	}
}

func TestNonPositiveTimeIsInTheFirstBucket(t *testing.T) {
	for _, value := range []int64{-1, 0, 1} {
		if index := BucketIndex(value); index != 0 {
			t.Errorf("%d is in bucket %d", value, index)
		}
	}
}

func TestHistogramCountsValuesByBucket(t *testing.T) {
	got := NewHistogram([]int64{2048, 1024, 1025, 1024})
	want := &Histogram{Schema: 6, Count: 4, SumNanoseconds: 5121, Indexes: []int{640, 641, 704}, Counts: []int64{2, 1, 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
