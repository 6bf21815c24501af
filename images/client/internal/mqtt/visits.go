package mqtt

import (
	"cmp"
	"time"

	packets5 "github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	level3 = 4 // of MQTT 3.1.1, on the wire
	sole   = 1 // identifier of the one message of a connection
)

// visit3 speaks MQTT 3.1.1.
type visit3 struct {
	driver *Driver
	over   *conn
}

func (v *visit3) greet(name string) error {
	_ = v.over.SetReadDeadline(time.Now().Add(connectTimeout))
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.ClientIdentifier, hello.CleanSession = "MQTT", level3, name, true
	hello.Keepalive = uint16(keepAlive / time.Second)
	hello.Username, hello.UsernameFlag = v.driver.Username, v.driver.Username != ""
	hello.Password, hello.PasswordFlag = []byte(v.driver.Password), v.driver.Password != ""
	if err := hello.Write(v.over); err != nil {
		return err
	}
	read, err := packets.ReadPacket(v.over)
	if err != nil {
		return err
	}
	agreed, is := read.(*packets.ConnackPacket)
	if !is {
		return unexpected(read)
	}
	if agreed.ReturnCode != packets.Accepted {
		return cmp.Or(packets.ConnErrors[agreed.ReturnCode], unexpected(agreed))
	}
	return nil
}

func (v *visit3) publish(topic string, message []byte) error {
	packet := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Qos, packet.Payload, packet.MessageID = topic, v.driver.QoS, message, sole
	if err := packet.Write(v.over); err != nil {
		return err
	}
	for v.driver.QoS > 0 {
		read, err := packets.ReadPacket(v.over)
		if err != nil {
			return err
		}
		switch read.(type) {
		case *packets.PubrecPacket:
			if err := acknowledge(v.over, packets.Pubrel, pubrelFlags, sole); err != nil {
				return err
			}
		case *packets.PubackPacket, *packets.PubcompPacket:
			return nil
		default:
			return unexpected(read)
		}
	}
	return nil
}

func (v *visit3) leave() error { return leave(v.over, false) }

// visit5 speaks MQTT 5.
type visit5 struct {
	driver *Driver
	over   *conn
}

func (v *visit5) greet(name string) error {
	_, err := v.driver.greet(v.over, v.driver.hello(name, false))
	return err
}

func (v *visit5) publish(topic string, message []byte) error {
	packet := &packets5.Publish{Topic: topic, QoS: v.driver.QoS, Payload: message, PacketID: sole}
	if err := write(v.over, packet); err != nil {
		return err
	}
	for v.driver.QoS > 0 {
		read, err := packets5.ReadPacket(v.over)
		if err != nil {
			return err
		}
		switch answer := read.Content.(type) {
		case *packets5.Puback:
			return isTaken(answer.ReasonCode)
		case *packets5.Pubcomp:
			return isTaken(answer.ReasonCode)
		case *packets5.Pubrec:
			if err := isTaken(answer.ReasonCode); err != nil {
				return err
			}
			if err := acknowledge(v.over, packets5.PUBREL, pubrelFlags, sole); err != nil {
				return err
			}
		default:
			return unexpected(read.PacketType())
		}
	}
	return nil
}

func isTaken(reason byte) error {
	if reason >= failing {
		return errRefused
	}
	return nil
}

func (v *visit5) leave() error { return leave(v.over, false) }
