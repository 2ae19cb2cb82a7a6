CREATE TEMPORARY TABLE kept_warehouses AS SELECT * FROM warehouse;
CREATE TEMPORARY TABLE kept_districts AS SELECT * FROM district;
TRUNCATE warehouse, district;
DO $$
BEGIN
	FOR own IN 1..(SELECT count(*) FROM kept_warehouses) LOOP
		INSERT INTO warehouse SELECT * FROM kept_warehouses WHERE w_id = own;
		INSERT INTO district SELECT * FROM kept_districts WHERE d_w_id = own;
		-- More than the rest of the page.
		INSERT INTO warehouse SELECT -1000 * own - n, repeat('x', 100) FROM generate_series(1, 70) n;
		INSERT INTO district SELECT -1000 * own - n, 0, repeat('x', 100) FROM generate_series(1, 70) n;
	END LOOP;
END $$;
DELETE FROM warehouse WHERE w_id < 0;
DELETE FROM district WHERE d_w_id < 0;
VACUUM FREEZE ANALYZE warehouse;
VACUUM FREEZE ANALYZE district;
