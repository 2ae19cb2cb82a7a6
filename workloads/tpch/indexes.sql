-- What is made after loading: indexes of foreign keys (clause 1.4.2 names these keys) where no primary key begins with them.
create index nation_region on nation (n_regionkey);
create index supplier_nation on supplier (s_nationkey);
create index partsupp_supplier on partsupp (ps_suppkey);
create index customer_nation on customer (c_nationkey);
create index orders_customer on orders (o_custkey);
create index lineitem_partsupp on lineitem (l_partkey, l_suppkey);
create index lineitem_supplier on lineitem (l_suppkey);
-- A copy of the line items for the comparison of access paths: an index of a date is allowed (clause 1.4.2), but the queries' plans
-- stay what they are without it.
create table shipments as select * from lineitem;
create index shipments_shipdate on shipments (l_shipdate);
