package broker

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPacerIsNeverEarly(t *testing.T) {
	base := time.Now()
	made, err := newPacer(context.Background(), base)
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	for number := range 200 {
		until := time.Duration(number) * 500 * time.Microsecond
		if err := made.wait(context.Background(), until); err != nil {
			t.Fatal(err)
		}
		if early := until - time.Since(base); early > 0 {
			t.Fatalf("%v early", early)
		}
	}
}

func TestPacerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	made, err := newPacer(ctx, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := made.wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
