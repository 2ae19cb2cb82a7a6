CREATE TABLE branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO branches VALUES (1, 0, '');
INSERT INTO tellers SELECT number, 1, 0, '' FROM generate_series(1, 10) AS number;
INSERT INTO accounts SELECT number, 1, 0, '' FROM generate_series(1, 20000) AS number;
VACUUM ANALYZE;
