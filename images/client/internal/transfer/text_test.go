package transfer

import (
	"math"
	"testing"
)

func TestSpreadIsTheSampleDeviation(t *testing.T) {
	mean, deviation := spread([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(deviation-math.Sqrt(32.0/7)) > 1e-12 {
		t.Errorf("%v ± %v", mean, deviation)
	}
	if _, deviation := spread([]float64{3}); deviation != 0 {
		t.Errorf("± %v of one value", deviation)
	}
}
