package mqtt

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/eclipse/paho.golang/packets"
	packets3 "github.com/eclipse/paho.mqtt.golang/packets"
)

// Version5 is MQTT 5, in plans and on the wire.
const (
	Version5 = "5"
	level5   = 5
)

const (
	failing       = 0x80 // the lowest reason code of a failure
	sessionExpiry = 3600 // seconds that a session outlives its connection
	pubrelFlags   = 2
)

// Reason codes of a refused connection.
const (
	unsupportedVersion = 0x84
	badAccount         = 0x86
	notAuthorized      = 0x87
)

// write writes a packet at once. Paho's packets write themselves in pieces.
func write(to io.Writer, packet io.WriterTo) error {
	var whole bytes.Buffer
	if _, err := packet.WriteTo(&whole); err != nil {
		return err
	}
	_, err := to.Write(whole.Bytes())
	return err
}

// acknowledge writes an answer in its short form. Paho's packets have two bytes more, a reason and the length of properties.
func acknowledge(to io.Writer, kind, flags byte, identifier uint16) error {
	_, err := to.Write([]byte{kind<<4 | flags, 2, byte(identifier >> 8), byte(identifier)})
	return err
}

// leave writes a DISCONNECT. It ends the session at the broker if there is one.
func leave(to io.Writer, session bool) error {
	if !session {
		_, err := to.Write([]byte{packets.DISCONNECT << 4, 0})
		return err
	}
	return write(to, &packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: new(uint32)}})
}

// hello returns the CONNECT of a client, which may have a session that outlives its connection. Mosquitto 2.0 saves no session
// that began with Clean Start.
func (d *Driver) hello(name string, session bool) *packets.Connect {
	made := &packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: level5, ClientID: name, CleanStart: !session, KeepAlive: uint16(keepAlive / time.Second),
		Username: d.Username, UsernameFlag: d.Username != "", Password: []byte(d.Password), PasswordFlag: d.Password != "",
		Properties: &packets.Properties{},
	}
	if session {
		expiry := uint32(sessionExpiry)
		made.Properties.SessionExpiryInterval = &expiry
	}
	return made
}

// greet sends a CONNECT, and returns the broker's consent.
func (d *Driver) greet(over *conn, hello *packets.Connect) (*packets.Connack, error) {
	_ = over.SetReadDeadline(time.Now().Add(connectTimeout))
	if err := write(over, hello); err != nil {
		return nil, err
	}
	if head, err := over.reader.Peek(2); err == nil && head[0] == packets.CONNACK<<4 && head[1] == 2 {
		return nil, packets3.ErrorRefusedBadProtocolVersion // it answers as in MQTT 3.1.1, without properties
	}
	read, err := packets.ReadPacket(over)
	if err != nil {
		return nil, err
	}
	agreed, is := read.Content.(*packets.Connack)
	if !is {
		return nil, fmt.Errorf("the broker answers CONNECT by %s", read.PacketType())
	}
	if agreed.ReasonCode != packets.ConnackSuccess {
		return nil, refused(agreed)
	}
	if most := agreed.Properties.MaximumQOS; most != nil && *most < d.QoS {
		return nil, d.lowerQoS(*most)
	}
	return agreed, over.SetReadDeadline(time.Time{})
}

func refused(answer *packets.Connack) error {
	switch answer.ReasonCode {
	case unsupportedVersion:
		return packets3.ErrorRefusedBadProtocolVersion
	case badAccount:
		return packets3.ErrorRefusedBadUsernameOrPassword
	case notAuthorized:
		return packets3.ErrorRefusedNotAuthorised
	}
	return fmt.Errorf("the broker refuses the connection: %s (%#x)", answer.Reason(), answer.ReasonCode)
}

// room returns the number of unanswered messages that the broker accepts.
func room(agreed *packets.Connack) int {
	if most := agreed.Properties.ReceiveMaximum; most != nil {
		return int(*most)
	}
	return math.MaxUint16
}

// alive returns the longest time without a packet to the broker; 0: there is none.
func alive(agreed *packets.Connack) time.Duration {
	if asked := agreed.Properties.ServerKeepAlive; asked != nil {
		return time.Duration(*asked) * time.Second
	}
	return keepAlive
}
