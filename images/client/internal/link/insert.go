package link

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Inside is the interface that has the addresses once there is a link.
const Inside = "link0"

const (
	middle     = "link0p" // its other end
	noneByRule = 1        // IN6_ADDR_GEN_MODE_NONE: no address of its own
)

// Insert puts a link between this network namespace and its interface: addresses, routes and the Ethernet address move
// to a new interface. It returns the other end of that interface. All packets must be carried between that end and the
// old interface. A namespace that has its link keeps it.
func Insert(name string) (near string, err error) {
	outside, err := netlink.LinkByName(name)
	if err != nil {
		return "", fmt.Errorf("interface %s: %w", name, err)
	}
	if _, err := netlink.LinkByName(Inside); err == nil {
		return middle, nil
	}
	if err := move(outside); err != nil {
		return "", fmt.Errorf("a link before %s: %w", name, explained(err))
	}
	return middle, nil
}

func explained(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: give the container the capability NET_ADMIN", err)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: the kernel lacks veth, or the network plugin has an interface whose address is fixed", err)
	}
	return err
}

// belongings are the settings of an interface that programs see.
type belongings struct {
	addresses  []netlink.Addr
	routes     []netlink.Route
	neighbours []netlink.Neigh // that an administrator has set
}

func move(outside netlink.Link) error {
	station := outside.Attrs().HardwareAddr
	if len(station) != 6 {
		return fmt.Errorf("it has no Ethernet address: %w", unix.EOPNOTSUPP)
	}
	found, err := belongingsOf(outside)
	if err != nil {
		return err
	}
	if len(found.addresses) == 0 {
		return errors.New("it has no IP address: an earlier attempt was interrupted, so create the pod again")
	}
	near, err := addPair(outside.Attrs().MTU, station)
	if err != nil {
		return err
	}
	if err := silence(outside, found.addresses); err != nil {
		return err
	}
	return found.give(near)
}

func belongingsOf(owner netlink.Link) (found belongings, err error) {
	if found.addresses, err = netlink.AddrList(owner, netlink.FAMILY_ALL); err != nil {
		return found, fmt.Errorf("addresses: %w", err)
	}
	if found.routes, err = netlink.RouteList(owner, netlink.FAMILY_ALL); err != nil {
		return found, fmt.Errorf("routes: %w", err)
	}
	all, err := netlink.NeighList(owner.Attrs().Index, netlink.FAMILY_ALL)
	if err != nil {
		return found, fmt.Errorf("neighbours: %w", err)
	}
	for _, one := range all {
		if one.State == netlink.NUD_PERMANENT {
			found.neighbours = append(found.neighbours, one)
		}
	}
	return found, nil
}

// addPair creates the new interface, up and with the old Ethernet address, and its other end, which ignores all packets.
func addPair(mtu int, station net.HardwareAddr) (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.HardwareAddr = Inside, mtu, station
	pair := &netlink.Veth{LinkAttrs: attributes, PeerName: middle, PeerMTU: uint32(mtu), PeerHardwareAddr: newStation()}
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("veth: %w", err)
	}
	far, err := netlink.LinkByName(middle)
	if err != nil {
		return nil, err
	}
	near, err := netlink.LinkByName(Inside)
	if err != nil {
		return nil, err
	}
	steps := []error{withoutOwnAddress(near), withoutOwnAddress(far), netlink.LinkSetARPOff(far), netlink.LinkSetUp(far), netlink.LinkSetUp(near)}
	return near, errors.Join(steps...)
}

// withoutOwnAddress stops IPv6 from giving the interface an address, if there is IPv6.
func withoutOwnAddress(device netlink.Link) error {
	if err := netlink.LinkSetIP6AddrGenMode(device, noneByRule); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("%s: %w", device.Attrs().Name, err)
	}
	return nil
}

// silence removes the addresses of the interface. From then on the kernel ignores what arrives there: the packets are
// for another Ethernet address, and it answers no ARP.
func silence(outside netlink.Link, addresses []netlink.Addr) error {
	for _, address := range addresses {
		if err := netlink.AddrDel(outside, &address); err != nil {
			return fmt.Errorf("address %v: %w", address.IPNet, err)
		}
	}
	if err := netlink.LinkSetHardwareAddr(outside, newStation()); err != nil {
		return fmt.Errorf("another Ethernet address: %w", err)
	}
	return errors.Join(netlink.LinkSetARPOff(outside), netlink.SetPromiscOn(outside))
}

// give adds what another interface had. Routes to networks come before those through their routers.
func (b belongings) give(owner netlink.Link) error {
	index := owner.Attrs().Index
	for _, address := range b.addresses {
		address.Label, address.LinkIndex = "", index
		address.Flags = address.Flags&^unix.IFA_F_TENTATIVE | unix.IFA_F_NODAD
		if err := netlink.AddrAdd(owner, &address); err != nil {
			return fmt.Errorf("address %v: %w", address.IPNet, err)
		}
	}
	for _, one := range b.neighbours {
		one.LinkIndex = index
		if err := netlink.NeighSet(&one); err != nil {
			return fmt.Errorf("neighbour %v: %w", one.IP, err)
		}
	}
	for _, throughRouters := range []bool{false, true} {
		for _, route := range b.routes {
			if (route.Gw != nil) != throughRouters {
				continue
			}
			route.LinkIndex, route.ILinkIndex = index, 0
			route.Flags &= int(netlink.FLAG_ONLINK)
			if err := netlink.RouteReplace(&route); err != nil {
				return fmt.Errorf("route to %v: %w", route.Dst, err)
			}
		}
	}
	return nil
}

// newStation returns a random Ethernet address, as a machine may give itself.
func newStation() net.HardwareAddr {
	station := make(net.HardwareAddr, 6)
	_, _ = rand.Read(station) // never fails
	station[0] = station[0]&^1 | 2
	return station
}
