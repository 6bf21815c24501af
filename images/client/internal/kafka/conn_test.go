package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func batch(records int32) []byte {
	made := kmsg.NewRecordBatch()
	made.NumRecords, made.Magic = records, 2
	return made.AppendTo(nil)
}

func TestRecordsOfARequestAreCounted(t *testing.T) {
	request := kmsg.NewPtrProduceRequest()
	for range 2 {
		topic := kmsg.NewProduceRequestTopic()
		for _, records := range []int32{3, 500} {
			partition := kmsg.NewProduceRequestTopicPartition()
			partition.Records = batch(records)
			topic.Partitions = append(topic.Partitions, partition)
		}
		request.Topics = append(request.Topics, topic)
	}
	for version := int16(3); version <= request.MaxVersion(); version++ {
		request.SetVersion(version)
		written := kmsg.NewRequestFormatter(kmsg.FormatterClientID("a client")).AppendRequest(nil, request, 7)
		if found := records(written); found != 2*503 {
			t.Errorf("version %d: %d records", version, found)
		}
	}
}
