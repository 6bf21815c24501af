//go:build linux

package cli

import (
	"errors"
	"fmt"
	"strings"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
)

const (
	shared          = "Shared"
	mostConnections = 1024
)

// checkGroup returns what is wrong with the publishers and subscribers of a topic.
func checkGroup(given *plan.BrokerPlan) error {
	group := given.Group
	connections := given.Pairs * (group.Publishers + group.Subscribers)
	switch {
	case group.Publishers == 1 && group.Subscribers == 1 && group.Subscription != shared:
		return nil
	case given.Engine != "" || given.Role != string(broker.Both):
		return errors.New("group has several publishers or subscribers: write role Both, and no engine")
	case connections > mostConnections:
		return fmt.Errorf("pairs and group make %d connections, and %d are allowed", connections, mostConnections)
	case group.Publishers > 1 && given.ContentFolder == "" && given.SizeBytes < payload.NumberBytes:
		return fmt.Errorf("sizeBytes is %d: messages of several publishers need %d, to say whose they are", given.SizeBytes, payload.NumberBytes)
	}
	for _, target := range given.Targets {
		if group.Subscription == shared && strings.HasPrefix(target.URL, kafkaScheme) {
			return errors.New("group.subscription Shared is only for mqtt and mqtts: write Each")
		}
	}
	return nil
}
