package calls

import (
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/keys"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Functions are the other exported functions. They compute, and neither read nor write data.
var Functions = []any{
	codec.Append[int],
	codec.Bool,
	codec.Bytes,
	codec.Check[int],
	codec.Convert[int, int],
	codec.Fallback[int],
	codec.Float,
	codec.Float64,
	codec.Int,
	codec.Int64,
	codec.JSON[int],
	codec.Lookup,
	codec.NewRecord,
	codec.ParseNumber,
	codec.Proto[*emptypb.Empty],
	codec.Readers[int],
	codec.Records,
	codec.Str,
	codec.String,
	codec.Tagged[int],
	codec.Uint,
	codec.ValueOf,
	zstd.Wrap[int],
	gc.All,
	gc.Any,
	gc.MaxAge,
	gc.MaxVersions,
	gc.Never,
	gc.Parse,
	tenant.Agree,
	tenant.Bind,
	tenant.CommonName,
	tenant.DNSName,
	tenant.FromCertificate,
	tenant.FromClaim,
	tenant.FromContext,
	tenant.FromHeader,
	tenant.MustParse,
	tenant.NewContext,
	tenant.Parse,
	tenant.URI,
	grpctenant.New,
	httptenant.New,
	httptenant.Paths,
	limit.New,
	limit.Parse,
	tsdb.AllEntities,
	tsdb.AllTime,
	tsdb.Between,
	tsdb.ClientConfig,
	tsdb.ConfigFromEnv,
	tsdb.Define[int],
	tsdb.DialOptions,
	tsdb.Key,
	tsdb.MustDefine[int],
	tsdb.New,
	tsdb.NewEntity,
	tsdb.NewPrefix,
	tsdb.Since,
	tsdb.Until,
	tsdb.ViewID,
	dynamic.Describe,
	dynamic.NewDecoder,
	dynamic.NewField,
	dynamic.Numbers,
	dynamic.Fields[int],
	dynamic.Rollups,
	dynamic.Schema,
	embedded.NewServer,
	errstatus.GRPC,
	errstatus.HTTP,
	heatmap.NewRecorder,
	keys.CheckPersonal,
	keys.NewHasher,
	retention.ReadPlan,
	rollup.Define[int],
	rollup.For[int],
	rollup.MustDefine[int],
	rollup.NewAdder[int],
	tsdbtest.CutStream,
	tsdbtest.Delay,
	tsdbtest.DelayBy,
	tsdbtest.LimitRate,
	tsdbtest.Fail,
	tsdbtest.FailEntries,
	tsdbtest.Hang,
	tsdbtest.LoseResponse,
	tsdbtest.Repeat,
	window.Days,
	window.Every,
	window.Months,
	window.New[int],
	window.NewSeries[int, int],
	window.Parse,
	window.Weeks,
}

// TestHelpers are functions that take a test and end it if something is wrong, so no test can call them with zero
// values.
var TestHelpers = []any{tsdbtest.Clients, tsdbtest.Open, tsdbtest.OpenTable}
