package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestBackup copies a folder that another program has open, into a folder and into two streams, and restores each.
func TestBackup(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	dir := filled(t, 3)
	store, err := embedded.Open(t.Context(), dir) // the program
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	do := func(args ...string) string {
		t.Helper()
		out, _, err := tidectl(t, t.Context(), "", args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	write := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	if out := do("--dir", dir, "backup", at("1")); !strings.Contains(out, dir) || !strings.Contains(out, "a copy opens") {
		t.Errorf("backup prints %s", out)
	}
	whole := write("whole", do("--dir", dir, "backup", "--manifest", at("m1"), "-"))
	do("--dir", dir, "tenants", "onboard", "newcomer")
	changes := write("changes", do("--dir", dir, "backup", "--base", at("m1"), "-"))
	if out := do("--output", "json", "verify", at("1")); !json.Valid([]byte(out)) || !strings.Contains(out, `"Bytes"`) {
		t.Errorf("verify prints %s", out)
	}
	do("restore", at("1"), at("a"))
	do("restore", whole, at("b"))
	do("restore", whole, changes, at("c"))
	for name, later := range map[string]bool{"a": false, "b": false, "c": true} {
		out := do("--dir", at(name), "tenants", "list")
		if !strings.Contains(out, "acme") || strings.Contains(out, "newcomer") != later {
			t.Errorf("%s has the tenants %s", name, out)
		}
	}
	for _, args := range [][]string{
		{"--dir", dir, "backup"},
		{"--dir", dir, "backup", "--base", at("m1"), at("x")},
		{"verify"},
		{"restore", at("1")},
		{"restore", at("1"), at("1"), at("x")},
		{"--project", "p", "backup", "name"},
	} {
		_, _, err := tidectl(t, t.Context(), "", args...)
		want(t, exitUsage, err, strings.Join(args, " "))
	}
	for _, args := range [][]string{
		{"--dir", dir, "backup", at("1")}, {"restore", at("1"), at("a")}, {"restore", changes, at("x")}, {"restore", at("m1"), at("x")}, {"verify", dir},
	} {
		if _, _, err := tidectl(t, t.Context(), "", args...); err == nil {
			t.Errorf("%v succeeds", args)
		}
	}
	left, err := filepath.Glob(at(".*"))
	if more, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".backup-*")); err != nil || len(left)+len(more) > 0 {
		t.Errorf("%v and %v are left", left, more)
	}
}

// backups is a service with backups.
type backups struct {
	adminpb.UnimplementedBigtableTableAdminServer
	made     *adminpb.CreateBackupRequest
	restored *adminpb.RestoreTableRequest
}

func ended(m proto.Message) (*longrunningpb.Operation, error) {
	value, err := anypb.New(m)
	return &longrunningpb.Operation{Name: "op", Done: true, Result: &longrunningpb.Operation_Response{Response: value}}, err
}

func (b *backups) CreateBackup(_ context.Context, r *adminpb.CreateBackupRequest) (*longrunningpb.Operation, error) {
	b.made = r
	return ended(r.Backup)
}

func (b *backups) GetBackup(_ context.Context, r *adminpb.GetBackupRequest) (*adminpb.Backup, error) {
	return &adminpb.Backup{
		Name: r.Name, SourceTable: b.made.Backup.SourceTable, State: adminpb.Backup_READY, SizeBytes: 12_000_000,
		EncryptionInfo: &adminpb.EncryptionInfo{EncryptionType: adminpb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION},
		StartTime:      timestamppb.Now(), EndTime: timestamppb.Now(), ExpireTime: b.made.Backup.ExpireTime,
	}, nil
}

func (b *backups) RestoreTable(_ context.Context, r *adminpb.RestoreTableRequest) (*longrunningpb.Operation, error) {
	b.restored = r
	return ended(&adminpb.Table{Name: r.TableId})
}

// TestBackupTable makes, shows and restores a backup by the service.
func TestBackupTable(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, b := grpc.NewServer(), new(backups)
	adminpb.RegisterBigtableTableAdminServer(srv, b)
	go srv.Serve(lis)
	defer srv.Stop()
	t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
	flags := []string{"--project", "p", "--instance", "i", "--table", "points"}
	begun := time.Now()
	out, _, err := tidectl(t, t.Context(), "", append(flags, "backup", "--cluster", "c", "--keep", "72h", "nightly")...)
	if err != nil || !strings.Contains(out, "READY, 12.0 MB") && !strings.Contains(out, "READY, 12 MB") {
		t.Fatalf("%s, %v", out, err)
	}
	if got := b.made; got.BackupId != "nightly" || got.Parent != "projects/p/instances/i/clusters/c" || got.Backup.SourceTable != "projects/p/instances/i/tables/points" ||
		got.Backup.ExpireTime.AsTime().Sub(begun).Round(time.Hour) != 72*time.Hour {
		t.Errorf("the service got %v", got)
	}
	if out, _, err = tidectl(t, t.Context(), "", append(flags, "verify", "--cluster", "c", "nightly")...); err != nil || !strings.Contains(out, "nightly") {
		t.Errorf("%s, %v", out, err)
	}
	_, told, err := tidectl(t, t.Context(), "", append(flags, "restore", "--cluster", "c", "nightly", "points2")...)
	if err != nil || !strings.Contains(told, "erase them before programs open points2") {
		t.Errorf("%s, %v", told, err)
	}
	if got := b.restored; got.TableId != "points2" || got.GetBackup() != "projects/p/instances/i/clusters/c/backups/nightly" {
		t.Errorf("the service got %v", got)
	}
}
