package network

import (
	"fmt"
	"strings"

	"tierbench.io/client/internal/contract"
)

// Reasons. After the first three, a trial may begin again: the server may still be starting, or be busy with a lost client.
const (
	serverBusy     = "ServerBusy"
	refused        = "ConnectionRefused"
	unreachable    = "ServerUnreachable"
	connectionLost = "ConnectionLost"
)

const left = "the server ended in mid-trial, or the network broke: see the server's log"

// iperf3Failures maps messages of iperf3 to a reason and to advice. The first match counts.
var iperf3Failures = []struct{ message, reason, advice string }{
	{"server is busy", serverBusy, "the iperf3 server runs the test of another client: wait until it ends, or check who else uses this server"},
	{"unable to connect to server: Connection refused", refused, "no server listens at this address: read the server's log"},
	{"unable to connect to server", unreachable, "check the server's address, its port, and network policies"},
	{serverLeft, connectionLost, left},
	{"server has terminated", connectionLost, "the server ended in mid-trial: see the server's log"},
	{"stream socket: ", connectionLost, left},
	{"unable to send control message", connectionLost, left},
	{"unable to receive control message", connectionLost, left},
	{"unable to send results", connectionLost, left},
	{"unable to receive results", connectionLost, left},
}

// With UDP, the first packet is not answered: the packet or its answer was dropped on the way.
const noAnswer = "unable to read from stream socket"

// A client reports this for its own kernel. A server only disconnects before the load.
const (
	notAllowed = "unable to set TCP_CONGESTION"
	serverLeft = "control socket has closed"
)

func iperf3Failure(message string, begun bool, options *Options) *contract.Failure {
	if options.Congestion != "" && !begun && (strings.Contains(message, notAllowed) || strings.Contains(message, serverLeft)) {
		message := fmt.Sprintf("%s: the kernel of client or server may not allow %s: at both ends load the module tcp_%[2]s, and add it to the "+
			"sysctl net.ipv4.tcp_allowed_congestion_control; or remove it from spec.tcp.congestionControl", message, options.Congestion)
		return &contract.Failure{Reason: "CongestionControlNotAllowed", Message: message}
	}
	if options.Protocol == UDP && strings.Contains(message, noAnswer) {
		advice := "TCP reaches the server and UDP does not: check firewalls and network policies between the nodes, or remove UDP from spec.protocols"
		return &contract.Failure{Reason: "UDPBlocked", Message: message + ": " + advice}
	}
	for _, known := range iperf3Failures {
		if strings.Contains(message, known.message) {
			return &contract.Failure{Reason: known.reason, Message: message + ": " + known.advice}
		}
	}
	return &contract.Failure{Reason: "Iperf3Failed", Message: message}
}

// mayPass reports whether a trial that failed for this reason may begin again.
func mayPass(failure *contract.Failure) bool {
	return failure.Reason == serverBusy || failure.Reason == refused || failure.Reason == unreachable
}
