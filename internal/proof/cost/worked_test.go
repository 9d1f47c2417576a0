package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

// The worked case: who writes and reads how much.
const (
	workedTenants = 200
	workedDevices = 50_000
	workedPoints  = 30_000 // a second
	workedDays    = 90
	lateDays      = 7 // until expired points are collected
	perDevice     = float64(workedPoints) / workedDevices
	processes     = 5
	lingers       = 50 * time.Millisecond // the writers' linger

	refreshes     = workedTenants * 2.0 / 30 // dashboards a second: two for each tenant, each refreshed every 30 seconds
	drawn         = 10                       // devices on a dashboard
	drawnHours    = 24
	rollupDays    = 366
	latestSeconds = 60 // between two reads of every device's newest point
	passSeconds   = 30 // between two passes of the worker
)

// Figures of an SSD node from the service's documentation. The document names the sources.
const (
	nodeWrites  = 14_000.0 // rows a second
	nodeReads   = 17_000.0 // rows a second
	nodeScans   = 220e6    // bytes a second
	nodeStores  = 5 * (1 << 40)
	busyShare   = 0.7 // the share of its CPU to use
	storedShare = 0.6 // the share of its storage to use
)

// setup is one way to run the worked case.
type setup struct {
	name          string
	points        sampled
	heads, rolled bool
	days          float64
}

// load is the load of a setup.
type load struct {
	setup
	Written, Requests, Scanned float64 // a second: rows written, requests, and bytes scanned
	Rows                       float64 // rows scanned a second
	Busy, Busiest              float64 // nodes at full CPU: with scans counted by bytes, or by rows
	Raw, Compressed            float64 // bytes stored
}

// nodesBusy returns how many nodes a load needs.
func nodesBusy(busy float64) int { return int(math.Ceil(busy / busyShare)) }

func nodesStoring(bytes float64) int { return int(math.Ceil(bytes / (storedShare * nodeStores))) }

// measurements are the measured figures of the worked case.
type measurements struct {
	json, binary               sampled
	plain, head, rolled, both  float64 // rows written for each point
	bucketBytes                float64 // bytes of a response with one bucket of an hour
	bucketRequests             float64 // requests for a device's computed and marked buckets
	passReads, passWrites      float64 // reading requests, and rows written, for each hour of a device
	marksSeen                  float64 // versions of the dirty mark of a device's hour that a pass may read
	markStored, markRow        float64 // bytes of a mark's cell, and of a row with one
	headCell                   float64
	hourStored, dayStored      float64 // bytes of a bucket
	readLatest, readLatestHead float64 // rows read for each device
	callsLatest                float64 // requests for each device, without heads
}

// find returns the figures of a call, by its name in the document.
func find(t *testing.T, all []counted, name, of string) counted {
	t.Helper()
	for _, c := range all {
		if c.String() == name && strings.HasPrefix(c.of, of) {
			return c
		}
	}
	t.Fatalf("no call has the name %s", name)
	return counted{}
}

// perUnit returns by how much a figure grows with n, between the first size and the last.
func (c counted) perUnit(of func(figure) int) float64 {
	sizes, last := c.at(), len(c.figures)-1
	return float64(of(c.figures[last])-of(c.figures[0])) / float64(sizes[last]-sizes[0])
}

func measureWorked(t *testing.T, all []counted, rows []stored) (m measurements) {
	t.Helper()
	m.json, m.binary = sampleOf(t, codec.JSON[reading]()), sampleOf(t, binaryReading())
	written := func(f figure) int { return f.written }
	m.plain = find(t, all, "`Repository.PutMany`", "points").perUnit(written)
	m.head = find(t, all, "`Repository.PutMany`, with heads", "points").perUnit(written)
	m.rolled = find(t, all, "`Repository.PutMany`, with rollups", "points, of").perUnit(written)
	m.both = find(t, all, "`Repository.PutMany`, with heads and rollups", "points").perUnit(written)
	computed := find(t, all, "`rollup.Reader.Buckets` or `Total`, of computed hours", "hours")
	m.bucketBytes = computed.perUnit(func(f figure) int { return f.received })
	m.bucketRequests = float64(find(t, all, "`rollup.Reader.Buckets`, of 24 hours, the last one marked", "points").figures[0].calls["read"])
	pass := find(t, all, "`rollup.Worker.Pass`, one tenant, one new hour of 60 points each", "entities")
	m.passReads = pass.perUnit(func(f figure) int { return f.calls["read"] })
	m.passWrites = pass.perUnit(written)
	many := find(t, all, "`Repository.LatestMany`", "entities")
	m.callsLatest = many.perUnit(func(f figure) int { return f.calls["read"] })
	m.readLatest = many.perUnit(func(f figure) int { return f.seen })
	m.readLatestHead = find(t, all, "`Repository.LatestMany`, with heads", "entities").perUnit(func(f figure) int { return f.seen })
	size := map[string]stored{}
	for _, r := range rows {
		size[r.what] = r
	}
	head, mark := size["a head of 3 points, JSON"], size["a row of marks, for one hour"]
	m.headCell = float64(head.bytes()-len(head.key)) / float64(head.cells)
	m.markRow, m.markStored = float64(mark.bytes()), float64(mark.bytes()-len(mark.key))
	m.marksSeen = float64(markVersions(t))
	m.hourStored = float64(size[rowOf24].bytes()-size[rowOf1].bytes()) / 23
	m.dayStored = float64(size[rowOfDays].bytes()) / 2
	return m
}

// loadOf computes the load of a setup.
func (m measurements) loadOf(s setup) load {
	l := load{setup: s}
	perPoint := m.plain
	switch {
	case s.heads && s.rolled:
		perPoint = m.both
	case s.heads:
		perPoint = m.head
	case s.rolled:
		perPoint = m.rolled
	}
	l.Written = workedPoints * perPoint

	rows := 0.0 // rows read one by one
	devices := float64(workedDevices) / latestSeconds
	if s.heads {
		rows += devices * m.readLatestHead
		l.Requests += workedTenants / float64(latestSeconds)
	} else {
		rows += devices * m.readLatest
		l.Requests += devices * m.callsLatest
	}
	drawing := refreshes * drawn
	if s.rolled {
		hour := perDevice * 3600 // points that are not computed yet, at most about this
		calls := drawing * m.bucketRequests
		l.Requests += calls
		rows += calls
		l.Scanned += drawing * (hour*s.points.Returned + drawnHours*m.bucketBytes)
		l.Rows += drawing * (hour + 2)
		hours := float64(workedDevices) / 3600 // hours of devices that workers compute each second
		l.Requests += hours * m.passReads
		rows += hours * m.passReads
		l.Scanned += hours * hour * s.points.Returned
		l.Rows += hours * hour
		l.Written += hours * m.passWrites
		polled := 2.0 * workedDevices / passSeconds // rows: the dirty marks of each device's hours and days
		l.Rows += polled
		l.Scanned += polled * (m.markRow + (m.marksSeen-1)*m.markStored)
		l.Requests += 2 * workedTenants / float64(passSeconds)
	} else {
		l.Requests += drawing
		rows += drawing
		l.Rows += drawing * drawnHours * 3600 * perDevice
		l.Scanned = l.Rows * s.points.Returned
	}
	l.Busy = l.Written/nodeWrites + rows/nodeReads + l.Scanned/nodeScans
	l.Busiest = l.Written/nodeWrites + rows/nodeReads + max(l.Scanned, 1000*l.Rows)/nodeScans

	points := workedPoints * 86_400 * (s.days + lateDays)
	l.Raw = points * s.points.RowBytes
	l.Compressed = l.Raw / s.points.Snappy
	extra := 0.0 // not compressed: it is little
	if s.heads {
		extra += workedPoints * 86_400 * lateDays * m.headCell // the newest 3 points of a device are negligible
	}
	if s.rolled {
		extra += workedDevices * (rollupDays + lateDays) * (24*m.hourStored + m.dayStored)
		extra += workedDevices * lateDays * (24 + 1) * m.markStored
	}
	l.Raw += extra
	l.Compressed += extra
	return l
}

func (m measurements) loads() (out []load) {
	for _, s := range []setup{
		{name: "JSON, points alone", points: m.json, days: workedDays},
		{name: "protobuf, points alone", points: m.binary, days: workedDays},
		{name: "protobuf, heads", points: m.binary, heads: true, days: workedDays},
		{name: "protobuf, rollups", points: m.binary, rolled: true, days: workedDays},
		{name: "protobuf, heads and rollups", points: m.binary, heads: true, rolled: true, days: workedDays},
		{name: "JSON, heads and rollups", points: m.json, heads: true, rolled: true, days: workedDays},
		{name: "protobuf, rollups; half of the points for 30 days", points: m.binary, rolled: true, days: (30 + workedDays) / 2},
		{name: "protobuf, rollups; all points for 30 days", points: m.binary, rolled: true, days: 30},
	} {
		out = append(out, m.loadOf(s))
	}
	return out
}

// workedTable formats the loads of the setups as a table.
func workedTable(loads []load) string {
	var b strings.Builder
	b.WriteString("| Setup | Rows written/s | Read requests/s | Rows scanned/s | MB/s scanned | Nodes for that | TB stored | TB compressed | Nodes for that | Nodes |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	whole := func(x float64) string { return thousands(int(math.Round(x))) }
	nodes := func(low, high int) string { return strings.Replace(span(low, high), " to ", "–", 1) }
	for _, l := range loads {
		storing := nodesStoring(l.Compressed)
		low, high := nodesBusy(l.Busy), nodesBusy(l.Busiest)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.1f | %.1f | %d (%d) | **%s** |\n", l.name, whole(l.Written), whole(l.Requests), whole(l.Rows),
			whole(l.Scanned/1e6), nodes(low, high), l.Raw/1e12, l.Compressed/1e12, storing, nodesStoring(l.Raw), nodes(max(low, storing), max(high, storing)))
	}
	return b.String()
}

// span formats a range of numbers.
func span(low, high int) string {
	if low == high {
		return thousands(low)
	}
	return thousands(low) + " to " + thousands(high)
}

// conclusions fails if the figures no longer support what the document says in words.
func conclusions(t *testing.T, d document) {
	t.Helper()
	plain, heads, rolled := d.loads[1], d.loads[2], d.loads[3]
	for _, c := range []struct {
		says string
		so   bool
	}{
		{"rollups save rows that are scanned", rolled.Rows < plain.Rows/10},
		{"without rollups drawing dashboards takes most of a node's time", plain.Busy > 2*plain.Written/nodeWrites},
		{"heads save requests and cost writes", heads.Requests < plain.Requests/5 && heads.Written == 2*plain.Written},
		{"the key is more than half of a row", float64(len(d.measured.binary.Key)) > d.measured.binary.RowBytes/2},
	} {
		if !c.so {
			t.Errorf("docs/cost.md says that %s, which is no longer true", c.says)
		}
	}
	for _, l := range d.loads {
		if nodesBusy(l.Busy) < nodesStoring(l.Compressed) {
			t.Errorf("docs/cost.md says that the load needs more nodes than the storage, which is not true with %s", l.name)
		}
	}
}
