package broker

import (
	"math"
	"math/rand/v2"
	"testing"

	"tierbench.io/client/internal/contract"
)

// recorded returns a series of round trips. `took` gives their durations in µs, and the seed adds noise of 10%.
func recorded(seed uint64, operations int, took func(number int) float64) *series {
	made, random := newSeries(), rand.New(rand.NewPCG(seed, 1))
	var roundTrip contract.Recorder
	for number := range operations {
		value := took(number) * 1000 * math.Exp(random.NormFloat64()/10)
		if made.add(int64(roundTrip.Add(int64(value)))) {
			made.seal(&contract.Distributions{RoundTrip: roundTrip.Take()})
		}
	}
	return made
}

func flat(int) float64 { return 100 }

// ramp falls from ten times the final duration to that duration, within `until` operations.
func ramp(until int) func(int) float64 {
	return func(number int) float64 { return 100 + 900*max(0, 1-float64(number)/float64(until)) }
}

func TestRampIsExcluded(t *testing.T) {
	for _, operations := range []int{400, 4000, 100_000} {
		until := operations / 5
		made := recorded(1, operations, ramp(until))
		before, steady := warmUp([]*series{made})
		if steady == nil || !*steady || before < until*8/10 || before > operations/2 {
			t.Fatalf("of %d operations %d are left out: steady %v", operations, before, steady)
		}
		discarded := made.discard(before)
		if discarded < int64(before) || discarded > int64(before+operations/4) {
			t.Errorf("of %d operations %d were left out for %d", operations, discarded, before)
		}
		for _, segment := range made.segments {
			if longest := segment.RoundTrip.Quantile(1); longest > 400_000 {
				t.Fatalf("a kept segment contains %d ns", longest)
			}
		}
	}
}

func TestFlatSeriesIsSteady(t *testing.T) {
	for seed := range uint64(20) {
		if _, steady := warmUp([]*series{recorded(seed, 5000, flat)}); steady == nil || !*steady {
			t.Errorf("seed %d: %v", seed, steady)
		}
	}
}

func TestStallIsNotATrend(t *testing.T) {
	stalls := func(number int) float64 {
		if number == 3000 {
			return 10_000
		}
		return 100
	}
	if before, steady := warmUp([]*series{recorded(1, 5000, stalls)}); steady == nil || !*steady || before > 1000 {
		t.Errorf("%d, %v", before, steady)
	}
}

func TestUnsteadySeriesKeepsAllOperations(t *testing.T) {
	growing := func(number int) float64 { return 100 + float64(number) }
	if before, steady := warmUp([]*series{recorded(1, 5000, growing)}); steady == nil || *steady || before != 0 {
		t.Errorf("%d, %v", before, steady)
	}
}

func TestSteadinessOfFewOperationsIsUnknown(t *testing.T) {
	if before, steady := warmUp([]*series{recorded(1, 199, ramp(50))}); steady != nil || before != 0 {
		t.Errorf("%d, %v", before, steady)
	}
	if before, steady := warmUp(nil); steady != nil || before != 0 {
		t.Errorf("%d, %v without round trips", before, steady)
	}
}

func TestPairsOfDifferentLengthsAreOneSeries(t *testing.T) {
	before, steady := warmUp([]*series{recorded(1, 1200, ramp(300)), recorded(2, 1500, ramp(300)), recorded(3, 2600, ramp(300))})
	if steady == nil || !*steady || before < 200 || before > 600 {
		t.Errorf("%d, %v", before, steady)
	}
}

func TestLongSeriesUsesBoundedMemory(t *testing.T) {
	made := recorded(1, 1_000_000, flat)
	if len(made.sums) >= mostBatches || len(made.segments) > mostBatches/segmentBatches {
		t.Errorf("%d batches, %d segments", len(made.sums), len(made.segments))
	}
	var total int64
	for _, segment := range made.segments {
		total += segment.RoundTrip.Count
	}
	if wanted := int64(len(made.segments) * segmentBatches * made.size); total != wanted {
		t.Errorf("%d operations in segments, not %d", total, wanted)
	}
}
