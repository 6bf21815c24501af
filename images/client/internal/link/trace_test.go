package link

import (
	"strings"
	"testing"
	"time"
)

func trace(t *testing.T, text string) sender {
	t.Helper()
	parsed, err := parseTrace(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func expectSent(t *testing.T, s sender, ready time.Duration, size int, sent time.Duration) {
	t.Helper()
	if got := s.send(ready, size); got != sent {
		t.Errorf("%d bytes that are ready at %v are sent at %v, not at %v", size, ready, got, sent)
	}
}

func TestOpportunitySendsAFullPacketOrSeveralSmallOnes(t *testing.T) {
	s := trace(t, "# a comment\n0\n2\n2\n10\n")
	expectSent(t, s, 0, opportunityBytes, 0)
	expectSent(t, s, 0, 1000, 2*ms)
	expectSent(t, s, 1*ms, 514, 2*ms)
	expectSent(t, s, 1*ms, 1, 2*ms)                      // the second one of this millisecond
	expectSent(t, s, 3*ms, opportunityBytes, 10*ms)      // the rest of it is unused
	expectSent(t, s, 3*ms, 1, 10*ms)                     // the file repeats after 10 ms, and begins with 0
	expectSent(t, s, 3*ms, 3*opportunityBytes-1, 12*ms)  // the rest of 10 ms, and both of 12
	expectSent(t, s, 20*ms, 2*opportunityBytes, 20*ms)   // the last one of a round, and the first of the next
	expectSent(t, s, 1001*ms, opportunityBytes, 1002*ms) // after a long pause
}

func TestLongRunUsesEveryOpportunity(t *testing.T) {
	s := trace(t, "1\n4\n9\n")
	var at time.Duration
	for range 3000 {
		at = s.send(0, opportunityBytes)
	}
	if at != 9000*ms {
		t.Errorf("3000 opportunities take %v", at)
	}
}

func TestStepsSendAtEachRateInTurn(t *testing.T) {
	s := trace(t, "seconds,Mbit/s\n0,10\n0.002,0\n0.004,20\n") // and repeats at 0.006
	expectSent(t, s, 0, full, 1*ms)
	expectSent(t, s, 0, 2*full, 4500*time.Microsecond) // half of it before the pause, half after
	expectSent(t, s, 5*ms, 2*full, 6*ms)
	expectSent(t, s, 5*ms, full, 7*ms) // again from the beginning
	expectSent(t, s, 100*ms, 6*full*10, 160*ms)
}

func TestOneStepIsAConstantRate(t *testing.T) {
	s := trace(t, "0, 10")
	expectSent(t, s, 0, full, 1*ms)
	expectSent(t, s, 5000*ms, 5000*full, 10000*ms)
}

func TestInvalidTraceIsRefused(t *testing.T) {
	for text, message := range map[string]string{
		"":                         "no line",
		"# nothing\n\n":            "no line",
		"0\n0\n":                   "all lines are 0",
		"5\n4\n":                   `line 2 is "4": it is before`,
		"1.5\n":                    `line 1 is "1.5": write whole milliseconds`,
		"-1\n":                     "write whole milliseconds",
		"4000000000\n":             "at most a day",
		"0,x\n":                    "row 1",
		"t,r\nu,s\n":               "row 1",
		"0,1\n0,2\n":               "not after",
		"1,1\n":                    "begins at 0",
		"0,0\n1,0\n":               "less than one packet",
		"0,NaN\n":                  "row 1",
		"0,-1\n":                   "row 1",
		"0,1e300\n":                "row 1",
		strings.Repeat("1", 1<<17): "too long",
	} {
		if _, err := parseTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.20q: %v, not %q", text, err, message)
		}
	}
}

func FuzzTraceSendsInOrder(f *testing.F) {
	f.Add("0\n2\n10\n", uint32(1500))
	f.Add("0,10\n1,20\n", uint32(100))
	f.Fuzz(func(t *testing.T, text string, gap uint32) {
		s, err := parseTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		var before time.Duration
		for number := range time.Duration(20) {
			ready := number * time.Duration(gap)
			at := s.send(ready, opportunityBytes)
			if at < ready || at < before {
				t.Fatalf("ready at %v, sent at %v, after %v", ready, at, before)
			}
			before = at
		}
	})
}
