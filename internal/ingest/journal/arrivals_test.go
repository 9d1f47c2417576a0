package journal

import (
	"testing"
	"time"
)

// TestAgeOfTheOldestRecord checks that the reported age of a record is never less than its real age, and only a little
// more.
func TestAgeOfTheOldestRecord(t *testing.T) {
	var a arrivals
	begin := time.Unix(1_700_000_000, 0)
	const records = 100_000 // one each 100 ms: far more than the recorded arrivals
	came := func(seq uint64) time.Time { return begin.Add(time.Duration(seq) * 100 * time.Millisecond) }
	for seq := range uint64(records) {
		a.add(seq, came(seq), 0)
		if len(a) > 4096 {
			t.Fatalf("got %d recorded arrivals", len(a))
		}
	}
	now := came(records)
	for seq := uint64(0); seq < records; seq += 777 {
		true, got := now.Sub(came(seq)), a.age(seq, now)
		if got < true || got > true+40*time.Second {
			t.Fatalf("record %d: got age %v, want %v or a little more", seq, got, true)
		}
	}
	if got := a.age(records, now); got > 40*time.Second {
		t.Errorf("newest record: got age %v", got)
	}
	a.add(records, now, records)
	a.add(records+1, now.Add(time.Hour), records+1)
	if got := a.age(records+1, now.Add(time.Hour)); got != 0 {
		t.Errorf("record that arrived now: got age %v", got)
	}
	if got := (&arrivals{}).age(7, now); got != 0 {
		t.Errorf("no arrivals: got age %v", got)
	}
}

// TestAgeAfterAnIdleStart checks that the age of the first record counts from its arrival, even if the journal was
// opened long before.
func TestAgeAfterAnIdleStart(t *testing.T) {
	var a arrivals
	opened := time.Unix(1_700_000_000, 0)
	a.add(7, opened, 7) // the sequence number of the first record to come
	came := opened.Add(time.Hour)
	a.add(7, came, 7)
	if got := a.age(7, came.Add(time.Second)); got != time.Second {
		t.Errorf("got age %v, want about a second", got)
	}
}
