// Package configs holds a test that runs one sequence of operations in many set-ups of a store, and asks all of them the same questions.
//
//	go test ./internal/proof/configs                                              about 20 seconds
//	nice go test ./internal/proof/configs -configs.setups 1000 -timeout 3h -v     the long run
//	go test ./internal/proof/configs -run TestConfigs/7$ -configs.seed 5 -v       one set-up of a run
//	go test ./internal/proof/configs -run TestBroken -broken -v                   broken versions, which the test must catch
//
// A set-up is drawn from the seed: the codec and its compression, key fields, precision, salts, heads, first writes that win, merges,
// retention, rollups, the last-value cache, the writer with its batches and its journal, views, sealed cursors, concurrency, the connection,
// and scans of one moment or weak ones. The operations do not depend on it, and neither do the answers. One model has them: a map.
//
// After some operations, the newest point of each entity is read through all doors: Latest, Range, LatestMany with and without a head, the
// cache, reads below a prefix, AsOf, windows, rollups and so on. All of them answer the same. So does everything that is stored.
package configs
