package contract

import (
	"math"
	"slices"
)

const (
	schema             = 6
	bucketsPerDoubling = 1 << schema
)

// Histogram is a distribution of nanoseconds in sparse exponential buckets: bucket i holds values v with
// 2^((i-1)/64) < v <= 2^(i/64), the indexing of Prometheus native histograms at schema 6.
type Histogram struct {
	Schema         int     `json:"schema"`
	Count          int64   `json:"count"`
	SumNanoseconds int64   `json:"sumNanoseconds"`
	Indexes        []int   `json:"indexes"`
	Counts         []int64 `json:"counts"`
}

// NewHistogram makes the histogram of values in nanoseconds.
func NewHistogram(values []int64) *Histogram {
	histogram := &Histogram{Schema: schema, Indexes: []int{}, Counts: []int64{}}
	buckets := map[int]int64{}
	for _, value := range values {
		buckets[BucketIndex(value)]++
		histogram.Count++
		histogram.SumNanoseconds += value
	}
	for index := range buckets {
		histogram.Indexes = append(histogram.Indexes, index)
	}
	slices.Sort(histogram.Indexes)
	for _, index := range histogram.Indexes {
		histogram.Counts = append(histogram.Counts, buckets[index])
	}
	return histogram
}

// bounds are the upper bounds of the first buckets, 2^(i/64). The bounds of other buckets are these, doubled repeatedly.
var bounds = func() [bucketsPerDoubling]float64 {
	var made [bucketsPerDoubling]float64
	for index := range made {
		made[index] = math.Exp2(float64(index) / bucketsPerDoubling)
	}
	return made
}()

// BucketIndex returns the bucket of a value. Values below 1 count as 1.
func BucketIndex(value int64) int {
	if value <= 1 {
		return 0
	}
	fraction, exponent := math.Frexp(float64(value))
	within, _ := slices.BinarySearch(bounds[:], 2*fraction)
	return (exponent-1)*bucketsPerDoubling + within
}

// Quantile returns the upper bound of the bucket that contains a quantile, in nanoseconds. It returns 0 for an empty histogram.
func (h *Histogram) Quantile(share float64) int64 {
	if h == nil {
		return 0
	}
	wanted := max(1, int64(math.Ceil(share*float64(h.Count))))
	for position, count := range h.Counts {
		if wanted -= count; wanted <= 0 {
			index := h.Indexes[position]
			return int64(math.Ldexp(bounds[index%bucketsPerDoubling], index/bucketsPerDoubling))
		}
	}
	return 0
}
