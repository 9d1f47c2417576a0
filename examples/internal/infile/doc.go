// Package infile reads files of points: CSV, NDJSON, line protocol and Parquet, as they are or packed with gzip or zstd.
// Reading can continue at a position of an earlier run.
//
//	f, err := infile.Open("points.csv.gz", os.Stdin)
//	r, err := infile.NewCSV(f, infile.CSVOptions{})
//	err = r.Seek(position) // to continue
//	for {
//		rec, err := r.Next() // io.EOF at the end
//		if rec.Err != nil { … } // this record cannot be read; others follow
//	}
//
// A record has at most 1 MiB, so memory does not grow with the file.
package infile
