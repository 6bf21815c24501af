package network

import (
	"fmt"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// Words returns what the network carried.
func Words(trial contract.Trial) string {
	parts := []string{}
	for _, way := range []struct {
		name string
		flow *contract.Flow
	}{{"upload", trial.Network.Upload}, {"download", trial.Network.Download}} {
		if way.flow != nil {
			parts = append(parts, way.name+" "+flowWords(way.flow))
		}
	}
	if echoes := trial.Network.Ping; echoes != nil {
		parts = append(parts, "ping "+pingWords(echoes))
	}
	if echoes := trial.Network.PingUnderLoad; echoes != nil {
		parts = append(parts, "ping under load "+pingWords(echoes))
	}
	return strings.Join(parts, "; ")
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
	text := fmt.Sprintf("%d of %d answered", echoes.Received, echoes.Sent)
	if echoes.MeanNanoseconds != nil {
		text += fmt.Sprintf(", mean %v", time.Duration(*echoes.MeanNanoseconds))
	}
	return text
}
