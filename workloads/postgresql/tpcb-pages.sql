CREATE TEMPORARY TABLE kept_branches AS SELECT * FROM pgbench_branches;
CREATE TEMPORARY TABLE kept_tellers AS SELECT * FROM pgbench_tellers;
TRUNCATE pgbench_branches, pgbench_tellers;
DO $$
BEGIN
	FOR own IN 1..(SELECT count(*) FROM kept_branches) LOOP
		INSERT INTO pgbench_branches SELECT * FROM kept_branches WHERE bid = own;
		INSERT INTO pgbench_tellers SELECT * FROM kept_tellers WHERE bid = own;
		-- More than the rest of the page.
		INSERT INTO pgbench_branches SELECT -1000 * own - n, 0, 'fill' FROM generate_series(1, 80) n;
		INSERT INTO pgbench_tellers SELECT -1000 * own - n, 0, 0, 'fill' FROM generate_series(1, 80) n;
	END LOOP;
END $$;
DELETE FROM pgbench_branches WHERE bid < 0;
DELETE FROM pgbench_tellers WHERE tid < 0;
VACUUM FREEZE ANALYZE pgbench_branches;
VACUUM FREEZE ANALYZE pgbench_tellers;
