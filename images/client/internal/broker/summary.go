package broker

import (
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/tcpinfo"
)

// course holds the stages of a trial: whether its connections are new, when all pairs were connected, when the load began, and
// the traffic before and during the load. Times count from the first connection.
type course struct {
	fresh            bool
	connected, begun time.Duration
	setup, load      tcpinfo.Counters
}

// traffic returns what all connections have carried so far.
func traffic(pairs []*pair) (total tcpinfo.Counters) {
	for _, one := range pairs {
		if one == nil {
			continue
		}
		for _, connection := range one.connections {
			total.Add(connection.Statistics().Wire)
		}
	}
	return total
}

// summarize sums what the pairs counted. Only subscribers count received messages.
func summarize(trial *contract.Trial, role Role, pairs []*pair, took *course) {
	total := &contract.Exchange{
		ErrorCauses: map[string]int64{},
		LoadBytes:   took.load.Bytes(), LoadPackets: took.load.Packets(),
	}
	if role != Alone {
		total.Arrivals = &contract.Arrivals{}
		trial.PairShares = &contract.PairShares{Received: []int64{}, Nanoseconds: []int64{}}
	}
	distributions := &contract.Distributions{}
	var last, connects, handshakes time.Duration
	setup := took.setup
	var all []*series
	for _, one := range pairs {
		if one == nil {
			continue
		}
		received, end := int64(0), time.Duration(0)
		for _, from := range one.senders {
			counts, came := from.ledger.close()
			end = max(end, came)
			add(total, &counts)
			if counts.Arrivals != nil {
				received += counts.Received
			}
			total.SentBytes += from.plain
			total.EncodedBytes += from.encoded
			merge(distributions, from.ledger.distributions())
			all = append(all, from.ledger.series)
		}
		last = max(last, end)
		if shares := trial.PairShares; shares != nil {
			shares.Received = append(shares.Received, received)
			shares.Nanoseconds = append(shares.Nanoseconds, max(end-took.begun, 0).Nanoseconds())
		}
		total.Pairs++
		addCosts(total, one)
		for _, connection := range one.connections {
			statistics := connection.Statistics()
			connects, handshakes = connects+statistics.Connect, handshakes+statistics.TLS
			setup.Add(statistics.Setup)
			addConnection(total, statistics)
		}
	}
	total.Cipher = transport(pairs).Cipher
	before, steady := warmUp(all)
	total.Steady = steady
	for _, one := range all {
		total.Discarded += one.discard(before)
		for _, segment := range one.segments {
			merge(distributions, segment)
		}
	}
	if number := max(total.Connections, 1); took.fresh {
		total.Setup = &contract.Setup{
			SetupBytes: setup.Bytes(), SetupPackets: setup.Packets(),
			ConnectNanoseconds: connects.Nanoseconds() / number, TLSNanoseconds: handshakes.Nanoseconds() / number,
		}
	}
	load := max(last-took.begun, 0)
	trial.DurationNanoseconds = load.Nanoseconds()
	total.SessionNanoseconds = (took.connected + load).Nanoseconds()
	trial.Exchange, trial.Distributions = total, distributions
}

func add(total, counts *contract.Exchange) {
	total.Sent += counts.Sent
	total.Acknowledged += counts.Acknowledged
	total.AcknowledgedBytes += counts.AcknowledgedBytes
	total.LateSends += counts.LateSends
	total.Unsent += counts.Unsent
	if total.Arrivals != nil {
		addArrivals(total.Arrivals, counts.Arrivals)
	}
	total.Errors += counts.Errors
	for cause, number := range counts.ErrorCauses {
		total.ErrorCauses[cause] += number
	}
}

func addArrivals(total, counts *contract.Arrivals) {
	total.Received += counts.Received
	total.Lost += counts.Lost
	total.AcknowledgedLost += counts.AcknowledgedLost
	total.Duplicated += counts.Duplicated
	total.OutOfOrder += counts.OutOfOrder
	total.ReceivedBytes += counts.ReceivedBytes
}

func addCosts(total *contract.Exchange, one *pair) {
	var spent payload.Spent
	for _, from := range one.senders {
		spent.Add(from.encoder.Spent())
	}
	for _, to := range one.receivers {
		spent.Add(to.decoder.Spent())
	}
	for _, connection := range one.connections {
		spent.Add(connection.Statistics().Spent)
	}
	total.CompressNanoseconds += spent.Compress.Nanoseconds()
	total.EncryptNanoseconds += spent.Encrypt.Nanoseconds()
	if total.Arrivals == nil {
		return
	}
	total.DecryptNanoseconds += spent.Decrypt.Nanoseconds()
	total.DecompressNanoseconds += spent.Decompress.Nanoseconds()
}

func addConnection(total *contract.Exchange, statistics Statistics) {
	total.Connections += max(1, statistics.Connections)
	total.TLSHandshakes += statistics.Handshakes.All
	total.ResumedHandshakes += statistics.Handshakes.Resumed
	total.Reconnects += statistics.Reconnects
	total.Retried += statistics.Resent
	total.Batches += statistics.Batches
	total.BatchBytes += statistics.BatchBytes
	total.WireSentBytes += statistics.Wire.SentBytes
	total.WireReceivedBytes += statistics.Wire.ReceivedBytes
	total.WireSentPackets += statistics.Wire.SentPackets
	total.WireReceivedPackets += statistics.Wire.ReceivedPackets
	total.TCPRetransmits += statistics.Wire.Retransmits
	for cause, number := range statistics.Errors {
		total.Errors += number
		total.ErrorCauses[cause] += number
	}
}
