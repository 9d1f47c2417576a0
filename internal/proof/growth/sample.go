package growth

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/grpc_channelz_v1"
	channelzservice "google.golang.org/grpc/channelz/service"
)

// Sampler takes samples of this process. Use NewSampler. Its methods are for one goroutine.
type Sampler struct {
	began    time.Time
	channels channelz.ChannelzServer
}

// NewSampler returns a sampler. A program that links this package counts gRPC channels from its start.
func NewSampler() *Sampler {
	s := &Sampler{began: time.Now()}
	channelzservice.RegisterChannelzServiceToServer(registrar{s})
	return s
}

// registrar receives the service that reports channels, which is then called without a server.
type registrar struct{ *Sampler }

func (r registrar) RegisterService(_ *grpc.ServiceDesc, impl any) {
	r.channels = impl.(channelz.ChannelzServer)
}

// Take collects garbage, and returns a sample. It costs as much as two garbage collections: the second one frees what
// was in pools of the sync package and what had finalizers.
func (s *Sampler) Take() (Sample, error) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	sample := Sample{At: time.Since(s.began)}
	sample.Values[Heap], sample.Values[Goroutines], sample.Values[Files] = int64(m.HeapAlloc), int64(runtime.NumGoroutine()), files()
	var err error
	sample.Values[Channels], sample.Values[Streams], err = s.calls()
	return sample, err
}

// files returns the number of open file descriptors, or -1 if the system does not say.
func files() int64 {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if entries, err := os.ReadDir(dir); err == nil {
			return int64(len(entries)) - 1 // without that of the folder itself
		}
	}
	return -1
}

// calls returns the number of channels, subchannels and sockets, and of calls under way.
func (s *Sampler) calls() (channels, streams int64, err error) {
	err = s.each(func(c *channelz.Channel) {
		d := c.GetData()
		channels += 1 + int64(len(c.GetSubchannelRef()))
		streams += d.GetCallsStarted() - d.GetCallsSucceeded() - d.GetCallsFailed()
		for _, sub := range c.GetSubchannelRef() {
			r, err := s.channels.GetSubchannel(context.Background(), &channelz.GetSubchannelRequest{SubchannelId: sub.GetSubchannelId()})
			if err == nil { // otherwise it has just been closed
				channels += int64(len(r.GetSubchannel().GetSocketRef()))
			}
		}
	})
	return channels, streams, err
}

// Targets returns how many channels each target has, such as "google-c2p:///bigtable.googleapis.com" for Direct Access.
func (s *Sampler) Targets() (map[string]int, error) {
	targets := map[string]int{}
	err := s.each(func(c *channelz.Channel) { targets[c.GetData().GetTarget()]++ })
	return targets, err
}

// each calls visit with each channel that is open.
func (s *Sampler) each(visit func(*channelz.Channel)) error {
	req := &channelz.GetTopChannelsRequest{}
	for {
		res, err := s.channels.GetTopChannels(context.Background(), req) // nothing is sent
		if err != nil {
			return fmt.Errorf("growth: list the channels: %w", err)
		}
		for _, c := range res.GetChannel() {
			visit(c)
			req.StartChannelId = c.GetRef().GetChannelId() + 1
		}
		if res.GetEnd() || len(res.GetChannel()) == 0 {
			return nil
		}
	}
}
