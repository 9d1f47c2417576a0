SELECT _key, d90['p:json'] AS payload
FROM tidemark
WHERE _key >= 'acme#weather#berlin#roof-7#9223370256535975808' AND _key < 'acme#weather#berlin#roof-7#9223370256539575808'
;
SELECT TIMESTAMP_MILLIS(9223372036854775807 - CAST(CAST(SUBSTR(_key, -19) AS STRING) AS INT64)) AS time, d90['p:json'] AS payload
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather#berlin#roof-7#')
;
SELECT _key, d90['p:json'] AS payload
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather#berlin#roof-7#')
ORDER BY _key
LIMIT 1
;
SELECT _key, `d90.h5`['p:json'] AS payload
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather!head#berlin#')
;
SELECT SUBSTR(_key, 1, LENGTH(_key) - 20) AS entity, MIN(SUBSTR(_key, -19)) AS newest
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather#berlin#')
GROUP BY entity
;
SELECT TIMESTAMP_TRUNC(TIMESTAMP_MILLIS(9223372036854775807 - CAST(CAST(SUBSTR(_key, -19) AS STRING) AS INT64)), HOUR) AS hour,
       AVG(CAST(JSON_VALUE(CAST(d90['p:json'] AS STRING), '$.temp') AS FLOAT64)) AS mean
FROM tidemark
WHERE _key >= 'acme#weather#berlin#roof-7#9223370256535975808' AND _key < 'acme#weather#berlin#roof-7#9223370256539575808'
GROUP BY hour
;
SELECT _key, CAST(keep['p:pb'] AS `payloads.google.protobuf.Duration`).seconds AS seconds
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#trips#')
;
SELECT _key, TO_INT64(keep['p:i64']) AS value
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#gauges#')
;
SELECT _key, _timestamp AS bucket, TO_INT64(sum) / 100 AS sum
FROM UNPACK((
  SELECT _key, `hours.s`['s.temp'] AS sum
  FROM tidemark(with_history => TRUE)
  WHERE STARTS_WITH(_key, 'acme#weather!rollup.hour#berlin#roof-7#')
))
;
SELECT _key
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather!mark.hour#berlin#roof-7#')
;
SELECT _key, CAST(_sys['json'] AS STRING) AS dataset
FROM tidemark
WHERE STARTS_WITH(_key, '!dataset#')
;
SELECT _key, d90['p:json'] AS payload
FROM tidemark
WHERE STARTS_WITH(_key, 'acme#weather#')
;
