package spool_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

func ExampleSpool() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	s, err := spool.Open(dir, spool.Options{})
	if err != nil {
		panic(err)
	}
	first, err := s.Append(ctx, [][]byte{[]byte("a"), []byte("b"), []byte("c")})
	fmt.Println("appended from", first, err)

	records, err := s.Read(ctx, 0, 100, 1<<20)
	for _, r := range records {
		fmt.Printf("%d %s\n", r.Seq, r.Data)
	}
	fmt.Println(err)
	s.Done(0)
	fmt.Println(s.Bury(ctx, spool.Dead{Seq: 1, Reason: "refused", Attempts: 1}))
	fmt.Println(s.Close())

	s, err = spool.Open(dir, spool.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	records, err = s.Read(ctx, 0, 100, 1<<20)
	fmt.Println("after a restart:", len(records), string(records[0].Data), err)
	// Output:
	// appended from 0 <nil>
	// 0 a
	// 1 b
	// 2 c
	// <nil>
	// <nil>
	// <nil>
	// after a restart: 1 c <nil>
}

func ExampleOptions() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := spool.Open(dir, spool.Options{MaxBytes: 1 << 20})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	fmt.Println(s.Stats().Limit)
	// Output: 1048576
}

func ExampleRecord() {
	r := spool.Record{Seq: 7, Data: []byte("21.5")}
	fmt.Printf("%d %s\n", r.Seq, r.Data)
	// Output: 7 21.5
}

func ExampleStats() {
	st := spool.Stats{Records: 2, Bytes: 300, Limit: 1000}
	fmt.Printf("%d records, %d%% full\n", st.Records, 100*st.Bytes/st.Limit)
	// Output: 2 records, 30% full
}

func ExampleDeadLetter() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := spool.Open(dir, spool.Options{Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	if _, err := s.Append(ctx, [][]byte{[]byte("a")}); err != nil {
		panic(err)
	}
	if err := s.Bury(ctx, spool.Dead{Seq: 0, Reason: "no such family", Attempts: 3}); err != nil {
		panic(err)
	}
	for d, err := range s.Dead(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Seq, d.Reason, d.Attempts, d.Time.UTC(), string(d.Data))
		n, err := s.Revive(ctx, d.ID)
		fmt.Println(n, err)
	}
	fmt.Println(s.Stats().First)
	// Output:
	// 0 no such family 3 2023-11-14 22:13:20 +0000 UTC a
	// 1 <nil>
	// 1
}

func ExampleDead() {
	d := spool.Dead{Seq: 7, Reason: "over the limit", Attempts: 1}
	fmt.Println(d.Seq, d.Reason)
	// Output: 7 over the limit
}
