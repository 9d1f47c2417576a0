package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// fakeAdmin is the instance admin service of an instance with two clusters. It answers with pages of two tablets.
type fakeAdmin struct {
	mu      sync.Mutex
	asked   []*adminpb.ListHotTabletsRequest
	tablets map[string][]*adminpb.HotTablet // by cluster
}

func (f *fakeAdmin) serve(_ any, stream grpc.ServerStream) error {
	switch method, _ := grpc.MethodFromServerStream(stream); method {
	case "/google.bigtable.admin.v2.BigtableInstanceAdmin/ListClusters":
		var req adminpb.ListClustersRequest
		if err := stream.RecvMsg(&req); err != nil {
			return err
		}
		return stream.SendMsg(&adminpb.ListClustersResponse{
			Clusters: []*adminpb.Cluster{{Name: req.Parent + "/clusters/c1"}, {Name: req.Parent + "/clusters/c2"}}, FailedLocations: []string{"zone-3"},
		})
	case "/google.bigtable.admin.v2.BigtableInstanceAdmin/ListHotTablets":
		var req adminpb.ListHotTabletsRequest
		if err := stream.RecvMsg(&req); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked = append(f.asked, &req)
		list, ok := f.tablets[filepath.Base(req.Parent)]
		if !ok {
			return status.Error(codes.NotFound, "there is no such cluster")
		}
		first := 0
		_, _ = fmt.Sscan(req.PageToken, &first)
		res := &adminpb.ListHotTabletsResponse{HotTablets: list[first:min(first+2, len(list))]}
		if first+2 < len(list) {
			res.NextPageToken = fmt.Sprint(first + 2)
		}
		return stream.SendMsg(res)
	}
	return status.Error(codes.Unimplemented, "the fake has no such method")
}

// hotInstance serves an instance over TCP, with points of two tenants, and hot tablets. Acme's devices are named by the
// time.
func hotInstance(t *testing.T) *fakeAdmin {
	t.Helper()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	tablet := func(table, first, last string, cpu float32) *adminpb.HotTablet {
		return &adminpb.HotTablet{
			TableName: "projects/p/instances/i/tables/" + table, StartKey: first, EndKey: last, NodeCpuUsagePercent: cpu,
			StartTime: timestamppb.New(at), EndTime: timestamppb.New(at.Add(5 * time.Minute)),
		}
	}
	f := &fakeAdmin{tablets: map[string][]*adminpb.HotTablet{
		"c1": {tablet("iot", "acme#temps#1780000000#", "acme#temps#1780000600#9", 93), tablet("other", "a", "b", 99), tablet("iot", "", "acme#temps#1779", 12)},
		"c2": {tablet("iot", "beta#temps#a#", "beta#temps#z#9", 40), tablet("iot", "acme#temps#1780000600#", "beta#temps#\x1b[31m", 20)},
	}}
	server, err := embedded.NewServer(embedded.Options{ServerOptions: []grpc.ServerOption{grpc.UnknownServiceHandler(f.serve)}})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, lis) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
	store, err := tsdb.Open(t.Context(), tsdb.Config{Project: "p", Instance: "i", Table: "iot"})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Ensure(t.Context(), temps)
	for i := range 50 {
		point := tsdb.Point[float64]{Entity: tsdb.NewEntity(fmt.Sprint(1_780_000_000 + i*60)), Time: at.Add(time.Duration(i) * time.Second), Value: 1}
		_, perr := temps.For(store, tenant.MustParse("acme")).PutMany(t.Context(), []tsdb.Point[float64]{point})
		err = errors.Join(err, perr)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHot: hot tablets are listed by tenant and dataset, with the advice on their keys, the findings of a recording,
// and their outlines on it.
func TestHot(t *testing.T) {
	f, ctx, dir := hotInstance(t), t.Context(), t.TempDir()
	command := func(args ...string) []string {
		return append([]string{"--project", "p", "--instance", "i", "--table", "iot", "hot"}, args...)
	}
	// An hour of writes, most of them to one entity of the hottest tablet.
	var keys [][]byte
	for i := range 600 {
		device := 1_780_000_060
		if i%5 == 0 {
			device = 1_780_000_000 + i*60
		}
		keys = append(keys, fmt.Appendf(nil, "acme#temps#%d#9223370254000000000", device))
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	recording := heatview.FromCounts(at, at.Add(10*time.Minute), time.Minute, []heatview.Count{{At: at.Add(time.Minute), Kind: heat.Writes, Rows: 60_000_000, Keys: keys}})
	file, page := filepath.Join(dir, "r.heat"), filepath.Join(dir, "r.html")
	if err := recording.Save(file); err != nil {
		t.Fatal(err)
	}
	out, said, err := tidectl(t, ctx, "", command("--since", "36h", "--heatmap", file, "--html", page, "--detailed-exitcode")...)
	want(t, exitChanges, err, "hot")
	for _, text := range []string{
		"acme temps: 1 hot tablet\n", "93%  2026-11-01 12:00:00 to 12:05:00 UTC  c1  acme#temps#1780000000# to acme#temps#1780000600#9",
		"heatmap: hot entity: acme temps 1780000060 has", `advisor: warning time-first: Key field device holds times in seconds since 1970, such as "1780000000"`, "beta temps: 1 hot tablet\n", "40%", "advisor: not asked: the tenant has no points in it", "several tenants, or other rows: 2 hot tablets\n",
		`\x1b[31m`, "the first row to acme#temps#1779", "advisor: not asked: its tablets have rows of several datasets",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("hot prints\n%s\nwant %q in it", out, text)
		}
	}
	if strings.Contains(out, "99%") || strings.Index(out, "acme temps") > strings.Index(out, "beta temps") || !strings.Contains(said, "the clusters in zone-3 did not answer") {
		t.Errorf("hot prints\n%s\nand says %s\nwant the tablets of one table, the hottest first", out, said)
	}
	if len(f.asked) != 3 || f.asked[0].EndTime.AsTime().Sub(f.asked[0].StartTime.AsTime()) != 36*time.Hour {
		t.Errorf("the service was asked %v, want two pages of c1 and one of c2, of 36 hours", f.asked)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), `"text":"hot tablet: acme#temps#1780000000# to acme#temps#1780000600#9, 93% of its server"`) {
		t.Errorf("the page does not have the hottest tablet: %v", err)
	}

	out, _, err = tidectl(t, ctx, "", command("--cluster", "c2", "--no-advice", "-o", "json")...)
	want(t, 0, err, "hot of a cluster")
	var groups []hotGroup
	if err := json.Unmarshal([]byte(out), &groups); err != nil || len(groups) != 2 || groups[0].Tenant != "beta" || groups[0].Dataset != "temps" || groups[0].Tablets[0].CPU < 0.39 || groups[0].Unadvised == "" {
		t.Errorf("%v: %s", err, out)
	}
	out, _, err = tidectl(t, ctx, "", command("--cluster", "c9")...)
	if want(t, exitFailed, err, "hot of a cluster that is not there"); !strings.Contains(fmt.Sprint(err), "list the hot tablets of cluster c9") || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	f.tablets = map[string][]*adminpb.HotTablet{"c1": nil, "c2": nil}
	out, _, err = tidectl(t, ctx, "", command("--detailed-exitcode")...)
	if want(t, 0, err, "hot without hot tablets"); !strings.Contains(out, "no tablet was hot in the last 24h") {
		t.Errorf("hot prints %s", out)
	}
	for _, args := range [][]string{
		{"--dir", dir, "hot"}, {"hot"}, command("x"), command("--since", "49h"), command("--html", page), command("-o", "xml"),
	} {
		_, _, err := tidectl(t, ctx, "", args...)
		want(t, exitUsage, err, strings.Join(args, " "))
	}
}
