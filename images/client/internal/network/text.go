package network

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// TextReport tells a person about trials as they end.
type TextReport struct{ out io.Writer }

// NewTextReport writes lines to out.
func NewTextReport(out io.Writer) *TextReport { return &TextReport{out} }

// Started says nothing.
func (r *TextReport) Started(int, bool, time.Time) error { return nil }

// Ended says what the network carried.
func (r *TextReport) Ended(trial contract.Trial) error {
	kind := "trial"
	if trial.Warmup {
		kind = "warm-up"
	}
	if trial.Failure != nil {
		_, err := fmt.Fprintf(r.out, "%s %d failed: %s: %s\n", kind, trial.Trial, trial.Failure.Reason, trial.Failure.Message)
		return err
	}
	said := []string{}
	for _, way := range []struct {
		name string
		flow *contract.Flow
	}{{"upload", trial.Network.Upload}, {"download", trial.Network.Download}} {
		if way.flow != nil {
			said = append(said, way.name+" "+flowWords(way.flow))
		}
	}
	if echoes := trial.Network.Ping; echoes != nil {
		said = append(said, pingWords(echoes))
	}
	_, err := fmt.Fprintf(r.out, "%s %d: %s\n", kind, trial.Trial, strings.Join(said, "; "))
	return err
}

func flowWords(flow *contract.Flow) string {
	text := fmt.Sprintf("%.2f Mbit/s", float64(flow.BitsPerSecond)/1e6)
	if flow.Retransmits != nil {
		text += fmt.Sprintf(", %d retransmits", *flow.Retransmits)
	}
	if flow.Packets != nil && flow.LostPackets != nil {
		text += fmt.Sprintf(", %d of %d packets lost", *flow.LostPackets, *flow.Packets)
	}
	return text
}

func pingWords(echoes *contract.Echoes) string {
	text := fmt.Sprintf("ping %d of %d answered", echoes.Received, echoes.Sent)
	if echoes.MeanNanoseconds != nil {
		text += fmt.Sprintf(", mean %v", time.Duration(*echoes.MeanNanoseconds))
	}
	return text
}
