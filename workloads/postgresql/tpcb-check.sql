-- Condition of TPC-B: accounts, tellers and branches have changed by what the history says.
DO $$
DECLARE
	history bigint := (SELECT coalesce(sum(delta), 0) FROM pgbench_history);
BEGIN
	IF history <> (SELECT sum(abalance) FROM pgbench_accounts)
		OR history <> (SELECT sum(tbalance) FROM pgbench_tellers)
		OR history <> (SELECT sum(bbalance) FROM pgbench_branches)
		OR EXISTS (SELECT FROM pgbench_branches b WHERE bbalance <>
			(SELECT coalesce(sum(delta), 0) FROM pgbench_history h WHERE h.bid = b.bid)) THEN
		RAISE EXCEPTION 'balances are not those of the history';
	END IF;
END $$;
